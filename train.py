"""Trains an agent for Marrakech with MaskablePPO, then measures how strong it is.

    python train.py                          five minutes, two players, then the table
    python train.py --minutes 60 --players 4
    python train.py --resume runs/NAME       goes on after a kill, a crash or a Ctrl-C

Everything of a run lies in its folder runs/NAME: config.json, metrics.csv with learning_curve.png,
checkpoint.pt for --resume, tensorboard/, past/ with earlier versions of the agent, and in the end
the model (model.json with its weights) and evaluation.json. `python evaluate.py runs/NAME greedy`
measures it again.
"""

from __future__ import annotations

import dataclasses
import sys
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure

from marrakech_agents import policies, ppo
from marrakech_agents.networks import Weights
from marrakech_agents.runs import PAST, RunFolder
from marrakech_env import arena
from marrakech_env.agent import load_agent
from marrakech_env.arena.report import print_result, write_json
from marrakech_env.sb3 import MarrakechVecEnv
from marrakech_env.spec import resolve_rules

OPPONENTS = ("random", "greedy", "expectimax")
"""Whom the trained agent is measured against."""
OUTPUT = Console()


@dataclass
class Config:
    """Train an agent for Marrakech with MaskablePPO, then measure it."""

    minutes: float = 5.0
    """Training time in minutes, evaluations on the way included."""
    timesteps: int | None = None
    """Decisions of the agent to learn from, instead of --minutes."""
    players: Literal[2, 3, 4] = 2
    """Number of players."""
    rules: str = "official"
    """A preset (official, boardgamearena, comp1110) and options: official;steering=end."""
    opponents: str = "random:1,greedy:8,expectimax:5,past:6"
    """Who plays the other seats: names, paths or module:attr, each with :WEIGHT (default 1), drawn
    anew for every game; `past` stands for earlier versions of the agent itself."""
    observation: Literal["features", "flat", "planes"] = "features"
    """Form of the observation."""
    reward: Literal["dense", "score", "win"] = "dense"
    """Reward scheme."""
    seed: int = 0
    """With --timesteps it fixes the run on one machine; with --minutes it fixes only the dice and
    the first weights, because the clock decides how much is learned."""
    name: str | None = None
    """Name of the run's folder below --folder; default: date and time."""
    folder: Path = Path("runs")
    """Where runs are kept."""
    resume: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """Folder of a run to go on with; its own settings hold, so no other option may be given."""

    num_envs: int = 256
    """Games that are played side by side."""
    num_steps: int = 64
    """Decisions in each game between two updates."""
    batch_size: int = 1024
    """Decisions in one gradient step."""
    epochs: int = 4
    """Times that each decision is learned from."""
    learning_rate: float = 1e-3
    """Step size of Adam at the start; falls linearly to a twentieth."""
    entropy: float = 0.01
    """Weight of the entropy bonus at the start; falls linearly to a twentieth."""
    gamma: float = 0.96
    """Discount for each decision."""
    gae_lambda: float = 0.95
    """Lambda of the generalised advantage estimate."""
    clip_range: float = 0.2
    """Clip range of PPO."""
    network: Literal["scorer", "mlp"] = "scorer"
    """Policy network. scorer: one small network scores every steering, another every placement,
    from its own consequences (wants --observation features). mlp: dense layers."""
    hidden: int = 64
    """Units of the scorer's layers."""
    value_hidden: int = 128
    """Units of each of the two hidden layers of the value network (of both networks with mlp)."""

    evaluations: int = 15
    """Evaluations on the way, spread evenly; each also keeps the agent as a past version."""
    evaluation_deals: int = 100
    """Deals in each of them (one game in every seat for each deal)."""
    final_deals: int = 1000
    """Deals against each opponent in the final evaluation."""
    past_versions: int = 6
    """How many past versions stay in the mixture, the newest ones."""
    checkpoint_minutes: float = 1.0
    """Minutes between two checkpoints: what a kill can cost."""


class Trainer(BaseCallback):
    """Watches the training: schedules, evaluations, past versions, checkpoints, the bar."""

    model: MaskablePPO

    def __init__(self, config: Config, run: RunFolder, env: MarrakechVecEnv, bar: Progress) -> None:
        super().__init__()
        self.config = config
        self.run = run
        self.env = env
        self.opponents = parse_opponents(config)
        self.learning_rate = config.learning_rate
        self.bar = bar
        self.task = bar.add_task("training", total=1.0, note="")
        self.started = self.last_checkpoint = time.monotonic()

    @property
    def elapsed(self) -> float:
        """Seconds of training, those before a resume included."""
        return float(self.run.elapsed + time.monotonic() - self.started)

    @property
    def done(self) -> float:
        """The part of the training that is done, 0..1."""
        if self.config.timesteps is not None:
            return min(1.0, self.model.num_timesteps / self.config.timesteps)
        return min(1.0, self.elapsed / (60 * self.config.minutes))

    def _on_training_start(self) -> None:
        self.set_opponents()
        self.started = self.last_checkpoint = time.monotonic()

    def _on_rollout_start(self) -> None:
        """Between two updates: the policy is whole, so it can be kept and measured."""
        decay = 1 - 0.95 * self.done
        self.learning_rate = self.config.learning_rate * decay
        self.model.ent_coef = self.config.entropy * decay
        measured = self.run.metrics[-1]["progress"] if self.run.metrics else 0.0
        if int(self.done * self.config.evaluations) > int(measured * self.config.evaluations):
            self.evaluate()
        if time.monotonic() - self.last_checkpoint > 60 * self.config.checkpoint_minutes:
            self.checkpoint()

    def _on_step(self) -> bool:
        self.bar.update(self.task, completed=self.done)
        return self.config.timesteps is not None or self.done < 1.0

    def evaluate(self) -> None:
        """Measures the policy against greedy, and keeps it as a past version."""
        config, steps = self.config, self.model.num_timesteps
        if steps == 0 or (self.run.metrics and self.run.metrics[-1]["steps"] == steps):
            return
        agent = ppo.PPOAgent(*describe(self.model, config))
        result = arena.play(
            [agent], config.players, config.rules, config.evaluation_deals, steps, field=["greedy"]
        )
        share, margin = result.pairings[0].win_share, result.pairings[0].margin
        row = {
            "steps": steps,
            "minutes": round(self.elapsed / 60, 3),
            "progress": round(self.done, 6),
            "win_share_greedy": share.value,
            "low": share.low,
            "high": share.high,
            "margin_greedy": margin.value,
        }
        self.run.metrics.append(row)
        for name, value in row.items():
            self.logger.record(f"evaluation/{name}", value)
        note = f"{steps:,} decisions, {100 * share.value:.0f} % against greedy"
        self.bar.update(self.task, completed=self.done, note=note)
        if not self.bar.console.is_terminal:
            self.bar.console.print(f"{100 * self.done:3.0f} %: {note}")
        if PAST in self.opponents:
            self.keep_version()

    def keep_version(self) -> None:
        """Adds the policy of now to the opponents."""
        folder = self.run.path / PAST / f"{self.model.num_timesteps:010d}"
        try:
            save_model(folder, self.model, self.config)
        except OSError as error:
            self.complain(f"cannot keep this version of the agent in {folder}: {error}")
            return
        self.run.past.append(folder)
        self.set_opponents()

    def set_opponents(self) -> None:
        """Gives the environment the mixture, with the newest past versions in it."""
        mixture: dict[Any, float] = {n: w for n, w in self.opponents.items() if n != PAST}
        versions = self.run.past[-self.config.past_versions :]
        for folder in versions:
            agent = ppo.load(folder, temperature=1.0)
            mixture[agent] = self.opponents.get(PAST, 0.0) / len(versions)
        self.env.set_opponents(mixture or "greedy")

    def checkpoint(self) -> None:
        """Writes a checkpoint; a full disk costs the checkpoint, not the training."""
        self.last_checkpoint = time.monotonic()
        state = {
            "steps": self.model.num_timesteps,
            "policy": self.model.policy.state_dict(),
            "optimizer": self.model.policy.optimizer.state_dict(),
            "torch_rng": torch.get_rng_state(),
        }
        try:
            self.run.save_checkpoint(state, self.elapsed)
        except OSError as error:
            self.complain(
                f"cannot write the checkpoint in {self.run.path}: {error}; "
                "training goes on, the last checkpoint still holds"
            )

    def complain(self, message: str) -> None:
        """Prints an error above the bar."""
        self.bar.console.print(message, style="red", markup=False)


def main(config: Config) -> None:
    """Trains, saves, evaluates and prints the table."""
    run = None
    try:
        if config.network == "scorer" and config.observation != "features":
            raise ValueError("--network scorer wants --observation features; else: --network mlp")
        if config.resume is not None:
            config, run = continued(config)
        opponents = parse_opponents(config)
        env = MarrakechVecEnv(
            config.num_envs,
            num_players=config.players,
            rules=config.rules,
            observation=config.observation,
            reward=config.reward,
            opponents={name: w for name, w in opponents.items() if name != PAST} or "greedy",
            seat="rotate",
        )
        run = run or new_run(config)
    except (ValueError, OSError) as error:
        sys.exit(f"train.py: {error}")
    OUTPUT.print(f"run folder: {run.path}")
    # Masked distributions are checked at every decision otherwise, a tenth of the time.
    torch.distributions.Distribution.set_default_validate_args(False)
    with progress_bar() as bar:
        trainer = Trainer(config, run, env, bar)
        model = make_model(env, config, trainer)
        warm_up(config)
        model.set_logger(configure(str(run.path / "tensorboard"), ["tensorboard"]))
        if run.checkpoint is not None:
            restore(model, run.checkpoint)
            OUTPUT.print(
                f"continued from the checkpoint at {model.num_timesteps:,} decisions, "
                f"{run.elapsed / 60:.1f} minutes of training"
            )
        try:
            left = (config.timesteps or sys.maxsize) - model.num_timesteps
            model.learn(left, callback=trainer, reset_num_timesteps=False)
        except KeyboardInterrupt:
            trainer.checkpoint()
            sys.exit(f"\nstopped; go on with: python train.py --resume {run.path}")
        trainer.evaluate()
        trainer.checkpoint()
        bar.update(trainer.task, completed=1.0)
    try:
        save_model(run.path, model, config)
        measure(run, config)
    except OSError as error:
        sys.exit(f"cannot write in {run.path}: {error}; then: python train.py --resume {run.path}")


def new_run(config: Config) -> RunFolder:
    """Makes the folder of a new run.

    Raises:
        OSError: It exists already, or cannot be written.
    """
    path = config.folder / (config.name or datetime.now().strftime("%Y-%m-%d_%H-%M-%S"))
    settings = dataclasses.asdict(config)
    del settings["resume"], settings["folder"]
    try:
        return RunFolder.create(path, settings)
    except FileExistsError:
        raise OSError(f"{path} exists already: take another --name, or --resume {path}") from None


def continued(given: Config) -> tuple[Config, RunFolder]:
    """The settings and the folder of the run of --resume.

    Raises:
        ValueError: It is no run, its files are damaged, or other options were given too.
    """
    assert given.resume is not None
    usual = Config(resume=given.resume)
    names = [field.name for field in dataclasses.fields(Config)]
    changed = [name for name in names if getattr(given, name) != getattr(usual, name)]
    if changed:
        raise ValueError(f"--resume takes the run's own settings; leave out: {', '.join(changed)}")
    run = RunFolder.open(given.resume)
    try:
        config = Config(**run.settings)
    except TypeError as error:
        raise ValueError(f"{given.resume} is of another version of train.py: {error}") from error
    return config, run


def progress_bar() -> Progress:
    """The bar: part done, time gone and left, last evaluation."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=OUTPUT,
    )


def warm_up(config: Config) -> None:
    """Compiles what is not compiled yet, so that it does not count as training time."""
    arena.play(OPPONENTS, config.players, config.rules, deals=1)
    MarrakechVecEnv(1, config.players, config.rules, config.observation, config.reward).reset()


def make_model(env: MarrakechVecEnv, config: Config, trainer: Trainer) -> MaskablePPO:
    """The learner; the trainer sets its learning rate."""
    policy: Any = "MlpPolicy"
    sizes: dict[str, Any] = {"net_arch": [config.value_hidden] * 2}
    if config.network == "scorer":
        policy = policies.ScorerPolicy
        sizes = {
            "num_players": config.players,
            "hidden": config.hidden,
            "value_hidden": config.value_hidden,
        }
    return MaskablePPO(
        policy,
        env,
        learning_rate=lambda _: trainer.learning_rate,
        n_steps=config.num_steps,
        batch_size=config.batch_size,
        n_epochs=config.epochs,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        clip_range=config.clip_range,
        policy_kwargs=sizes,
        seed=config.seed,
        device="cpu",
    )


def restore(model: MaskablePPO, checkpoint: dict[str, Any]) -> None:
    """Puts the learner back to a checkpoint; its games start anew, with fresh dice."""
    model.policy.load_state_dict(checkpoint["policy"])
    model.policy.optimizer.load_state_dict(checkpoint["optimizer"])
    model.num_timesteps = checkpoint["steps"]
    torch.set_rng_state(checkpoint["torch_rng"])
    env = model.get_env()
    assert env is not None
    env.seed(2**32 * checkpoint["steps"] + (model.seed or 0))


def describe(model: MaskablePPO, config: Config) -> tuple[ppo.ModelHead, Weights]:
    """What model.json says about the agent, and the weights of its policy."""
    kind, weights = policies.export(model.policy)
    head = ppo.ModelHead(
        num_players=config.players,
        rules=str(resolve_rules(config.rules, config.players)),
        observation=config.observation,
        observation_size=int(np.prod(model.observation_space.shape or ())),
        network=kind,
        steps=model.num_timesteps,
        trained_by=f"train.py, seed {config.seed}",
    )
    return head, weights


def save_model(folder: Path, model: MaskablePPO, config: Config) -> None:
    """Writes the policy as an agent that `load_agent` and `evaluate.py` take.

    Raises:
        OSError: The folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ppo.save(folder, *describe(model, config))


def measure(run: RunFolder, config: Config) -> None:
    """Plays the trained agent against the known ones, prints the table and keeps it as JSON."""
    OUTPUT.print(f"trained agent: {run.path}; measuring it ...")
    result = arena.play(
        [str(run.path)],
        config.players,
        config.rules,
        config.final_deals,
        seed=2**32 + config.seed,  # deals that no evaluation on the way has seen
        field=OPPONENTS,
    )
    print_result(result, OUTPUT)
    write_json(result, run.path / "evaluation.json")
    OUTPUT.print(f"again: python evaluate.py {run.path} greedy --players {config.players}")


def parse_opponents(config: Config) -> dict[str, float]:
    """Reads --opponents as weights by agent.

    Raises:
        ValueError: No opponent, an unknown one, a doubled one, or a bad weight.
    """
    mixture: dict[str, float] = {}
    for part in filter(None, config.opponents.split(",")):
        name, weight = part, 1.0
        head, colon, tail = part.rpartition(":")
        if colon and tail.replace(".", "", 1).isdigit():  # else the colon is that of module:attr
            name, weight = head, float(tail)
        if name in mixture:
            raise ValueError(f"--opponents: {name!r} stands twice")
        if weight <= 0:
            raise ValueError(f"--opponents: the weight of {name!r} must be above 0, not {weight}")
        if name != PAST:
            load_agent(name, config.players)
        mixture[name] = weight
    if not mixture:
        raise ValueError("--opponents names nobody")
    return mixture


if __name__ == "__main__":
    main(tyro.cli(Config))
