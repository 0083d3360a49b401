"""Trains a value network by temporal differences in self-play.

Each round plays some games with the averaged weights, part of them against greedy or expectimax,
and learns from their rows. The target of a row is the exact expectation after the next turn,
corrected by lambda times what came out later. From `Settings.first_sibling` on, siblings of the
rows join: their targets contain no luck of the die, and they teach the network to tell placements
apart. The seed and the number of games fix a run, whatever the number of threads.
"""

from __future__ import annotations

import copy
import os
import platform
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from marrakech_env.spec import MAX_PLAYERS, RuleSet, resolve_rules

from ..value import Effort, ValueAgent
from ..value_net.inputs import LEAD_INPUT, LEAD_UNIT, NUM_INPUTS
from ..value_net.model import WEIGHT_NAMES, ValueHead, ValueModel, save
from ..value_net.network import MARGIN_UNIT, NUM_HIDDEN, NUM_OUTPUTS, NUM_SUMS, empty_net
from .learner import one_thread
from .self_play import Player, targets


@dataclass(frozen=True, slots=True)
class Settings:
    """How a network is trained.

    Attributes:
        games: Games that the schedules of step size and lambda stretch over.
        games_a_round: Games between two updates of the weights that play.
        rows_a_step: Rows of one step of Adam.
        uses: Times that each row is learned from.
        learning_rate: Step size at the start.
        last_learning_rate: Step size at the end, reached along a half cosine.
        first_lam: Lambda of the first round, while the values mean nothing yet.
        lam_halves: Games in which lambda halves; it does not fall below `lam` at the start.
        lam: Lowest lambda at the start of the training.
        last_lam: Lowest lambda at the end, reached linearly.
        siblings: Chance that all placements of a turn become rows, see `self_play`.
        first_sibling: Part of the training after which siblings begin.
        epsilon: Chance of a random steering, and of a random placement.
        guests: Chance of a game with the network in one seat and greedy or expectimax in the
            others, see `fixed_opponents`.
        margin_weight: Value of a dirham of margin, in shares of the win.
        margin_loss: Weight of the margin's error in the loss.
        averaging: Steps in the running average of the weights.
        workers: Threads that play.
    """

    games: int = 100_000
    games_a_round: int = 128
    rows_a_step: int = 256
    uses: int = 6
    learning_rate: float = 2e-3
    last_learning_rate: float = 2e-5
    first_lam: float = 0.95
    lam_halves: float = 2000.0
    lam: float = 0.6
    last_lam: float = 0.0
    siblings: float = 0.2
    first_sibling: float = 0.4
    epsilon: float = 0.05
    guests: float = 0.5
    margin_weight: float = 0.005
    margin_loss: float = 1.0
    averaging: float = 500.0
    workers: int = 2

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ValueError: A whole number is below 1, or a chance is outside 0..1.
        """
        for name in ("epsilon", "guests", "siblings", "first_sibling"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be 0..1, not {getattr(self, name)}")
        for name in ("games", "games_a_round", "rows_a_step", "uses", "workers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, not {getattr(self, name)}")


class TDTrainer:
    """Trains one network.

    Attributes:
        rule_set: The rules of the games.
        settings: How the network is trained.
        num_games: Games learned from so far.
        seconds: Time of all rounds so far.
    """

    def __init__(
        self,
        num_players: int = 2,
        rules: str | RuleSet = "official",
        seed: int = 0,
        settings: Settings | None = None,
    ) -> None:
        """Start with small random weights.

        Raises:
            ValueError: Bad rules or number of players.
        """
        self.rule_set = resolve_rules(rules, num_players)
        self.settings = settings or Settings()
        self.seed = seed
        self.num_games = 0
        self.seconds = 0.0
        self.num_steps = 0
        self._rng = np.random.default_rng(seed)
        self._parameters = self._first_weights()
        self._averages = {name: p.detach().clone() for name, p in self._parameters.items()}
        self._optimizer = torch.optim.Adam(self._parameters.values(), fused=True)
        self._player = Player(self.rule_set, empty_net(self.settings.margin_weight))
        self._pool = ThreadPoolExecutor(self.settings.workers)

    def _first_weights(self) -> dict[str, Tensor]:
        first = np.zeros((NUM_INPUTS, NUM_SUMS), np.float32)
        first[:, :NUM_HIDDEN] = self._rng.normal(0, 0.1, (NUM_INPUTS, NUM_HIDDEN))
        arrays = {
            "first": first,
            "bias": np.zeros(NUM_SUMS, np.float32),
            "second": np.zeros((NUM_HIDDEN, NUM_OUTPUTS), np.float32),
        }
        return {n: torch.from_numpy(a).requires_grad_() for n, a in arrays.items()}

    def _centre(self, inputs: NDArray[np.float32]) -> None:
        """Shift and scale the hidden units so that each is active for about half of the inputs.

        Most inputs are never negative, so with plain random weights a third of the units would
        never be active and a third always. No value changes, because the second layer is zero.
        """
        with torch.no_grad():
            first, bias = self._parameters["first"], self._parameters["bias"]
            sums = torch.from_numpy(inputs) @ first[:, :NUM_HIDDEN]
            first[:, :NUM_HIDDEN] /= sums.std(0)
            shift = torch.from_numpy(self._rng.normal(0, 0.5, NUM_HIDDEN).astype(np.float32))
            bias[:NUM_HIDDEN] = shift - sums.mean(0) / sums.std(0)
            for name, average in self._averages.items():
                average.copy_(self._parameters[name])

    @property
    def done(self) -> float:
        """The part of the schedules that is done, 0..1."""
        return min(1.0, self.num_games / self.settings.games)

    @one_thread()
    def round(self, done: float | None = None) -> dict[str, float]:
        """Play one round of games and learn from them.

        Args:
            done: The part of the schedules that is done, 0..1; `self.done` where None.

        Returns:
            Figures of the round: `games` (all so far), `rows`, `loss_margin`, `loss_win`.
        """
        started = time.monotonic()
        done = self.done if done is None else done
        settings = self.settings
        rows = self._play(settings.siblings if done >= settings.first_sibling else 0.0)
        if self.num_games == 0:
            self._centre(rows["inputs"])
        lam = settings.lam + (settings.last_lam - settings.lam) * done
        lam = max(lam, settings.first_lam * 0.5 ** (self.num_games / settings.lam_halves))
        share = 0.5 + 0.5 * np.cos(np.pi * done)
        rate = settings.last_learning_rate + share * (
            settings.learning_rate - settings.last_learning_rate
        )
        for group in self._optimizer.param_groups:
            group["lr"] = float(rate)
        losses = self._learn(rows, lam)
        self.num_games += settings.games_a_round
        self.seconds += time.monotonic() - started
        return {
            "games": float(self.num_games),
            "rows": float(len(rows)),
            "loss_margin": losses[0],
            "loss_win": losses[1],
        }

    def _play(self, siblings: float) -> NDArray[np.void]:
        """Play a round of games; the number of workers does not change them."""
        settings = self.settings
        self._write_net()
        parts_of_round = np.array_split(np.arange(settings.games_a_round), settings.workers)
        counts = [len(part) for part in parts_of_round]
        firsts = self.num_games + np.cumsum([0, *counts])
        parts = self._pool.map(
            lambda first, count: self._player.play(
                self.seed, int(first), count, settings.epsilon, settings.guests, siblings
            ),
            firsts[:-1],
            counts,
        )
        games, beside = zip(*parts, strict=True)
        return np.concatenate([*games, *beside])

    def _write_net(self) -> None:
        for name in WEIGHT_NAMES:
            self._player.evaluator["net"][name][0] = self._averages[name].numpy()

    def _learn(self, rows: NDArray[np.void], lam: float) -> tuple[float, float]:
        """Take steps of Adam over the rows in random order; return the mean losses."""
        settings = self.settings
        inputs = torch.from_numpy(rows["inputs"])
        taken = torch.from_numpy(rows["seats"] >= 0)
        seats = np.maximum(rows["seats"], 0).astype(np.int64)
        by_slot = np.take_along_axis(targets(rows, lam), seats[:, :, None], axis=1)
        goals = torch.from_numpy(by_slot)
        size = settings.rows_a_step
        totals, steps = np.zeros(2), 0
        for _ in range(settings.uses):
            order = torch.from_numpy(self._rng.permutation(len(rows)))
            for at in range(0, len(rows) - size + 1, size):
                index = order[at : at + size]
                margin, win = self._losses(inputs[index], taken[index], goals[index])
                self._optimizer.zero_grad()
                # Any, because torch declares no types for `backward`.
                loss: Any = settings.margin_loss * margin + win
                loss.backward()
                self._optimizer.step()
                self._average()
                totals += margin.item(), win.item()
                steps += 1
        margin_loss, win_loss = totals / max(steps, 1)
        return float(margin_loss), float(win_loss)

    def _losses(self, inputs: Tensor, taken: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean squared error of the margins, in units, and the wins' cross entropy."""
        sums = inputs @ self._parameters["first"] + self._parameters["bias"]
        out = sums[:, NUM_HIDDEN:] + sums[:, :NUM_HIDDEN].relu() @ self._parameters["second"]
        lead = inputs[:, LEAD_INPUT : LEAD_INPUT + MAX_PLAYERS] * (LEAD_UNIT / MARGIN_UNIT)
        error = (lead + out[:, :MAX_PLAYERS] - targets[:, :, 0] / MARGIN_UNIT) * taken
        margin = (error * error).sum() / taken.sum()
        logits = out[:, MAX_PLAYERS:].masked_fill(~taken, -1e9)
        win = targets[:, :, 1].clamp(0, 1) * taken
        win = win / win.sum(1, keepdim=True).clamp_min(1e-6)
        return margin, -(win * logits.log_softmax(1)).sum(1).mean()

    def _average(self) -> None:
        """Move the averaged weights; the average is shorter at the start."""
        self.num_steps += 1
        share = 1 / min(self.settings.averaging, 1 + 0.2 * self.num_steps)
        for name, parameter in self._parameters.items():
            self._averages[name].lerp_(parameter.detach(), share)

    def model(self) -> ValueModel:
        """Return the present averaged weights as a model."""
        head = ValueHead(
            num_players=self.rule_set.num_players,
            rules=str(self.rule_set),
            seed=self.seed,
            games=self.num_games,
            minutes=round(self.seconds / 60, 1),
            machine=f"{platform.system()} {platform.machine()}, {self.settings.workers} threads",
            margin_weight=self.settings.margin_weight,
            trained_by="marrakech_agents.training.temporal_difference",
        )
        weights = {name: average.numpy() for name, average in self._averages.items()}
        return ValueModel.from_weights(head, weights)

    def agent(self, effort: Effort | None = None) -> ValueAgent:
        """Return the present agent; None stands for its usual search."""
        return ValueAgent(self.model(), effort=effort)

    def save(self, folder: str | os.PathLike[str], name: str = "model") -> None:
        """Write the present model into an existing folder.

        Raises:
            OSError: The folder cannot be written.
        """
        save(folder, self.model(), name)

    def state(self) -> dict[str, Any]:
        """Copy what `restore` needs: tensors and plain values."""
        return {
            "parameters": {name: p.detach().clone() for name, p in self._parameters.items()},
            "averages": {name: average.clone() for name, average in self._averages.items()},
            "optimizer": copy.deepcopy(self._optimizer.state_dict()),
            "num_games": self.num_games,
            "seconds": self.seconds,
            "num_steps": self.num_steps,
            "rng": self._rng.bit_generator.state,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state of a trainer with the same arguments."""
        with torch.no_grad():
            for name in WEIGHT_NAMES:
                self._parameters[name].copy_(state["parameters"][name])
                self._averages[name].copy_(state["averages"][name])
        self._optimizer.load_state_dict(state["optimizer"])
        self.num_games = state["num_games"]
        self.seconds = state["seconds"]
        self.num_steps = state["num_steps"]
        self._rng.bit_generator.state = state["rng"]
