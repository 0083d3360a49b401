"""train.py: a run from start to end, kills and resumes, what is refused."""

import csv
import importlib.util
import json
import os
import random
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

for package in ("sb3_contrib", "tyro", "rich", "matplotlib", "tensorboard"):
    pytest.importorskip(package)

ROOT = Path(__file__).parents[1]
QUICK = ("--evaluations 4 --evaluation-deals 2 --final-deals 4 --checkpoint-minutes 0.001").split()
SMALL = [
    *"--num-envs 16 --num-steps 32 --batch-size 128 --epochs 1".split(),
    *"--hidden 16 --summary 16 --value-hidden 16".split(),
    *QUICK,
]
VALUE = ["--algorithm", "value", *QUICK]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
PATIENCE = 600
"""Seconds to wait for what takes a few, or a minute where kernels are compiled, if the machine is
idle."""


def command(folder, *arguments):
    return [sys.executable, str(ROOT / "train.py"), "--folder", str(folder), *arguments]


def run(arguments, **kwargs):
    return subprocess.run(
        arguments, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, **kwargs
    )


@pytest.fixture(scope="module")
def train():
    """train.py as a module."""
    spec = importlib.util.spec_from_file_location("train", ROOT / "train.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["train"] = module  # where the types of its dataclasses are looked up
    spec.loader.exec_module(module)
    return module


def steps_of(folder):
    with open(folder / "metrics.csv", newline="") as file:
        return [int(row["steps"]) for row in csv.DictReader(file)]


def sha256_of(folder):
    return json.loads((folder / "model.json").read_text())["sha256"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished small run."""
    folder = tmp_path_factory.mktemp("runs")
    done = run(command(folder, "--timesteps", "4096", "--name", "a", *SMALL))
    assert done.returncode == 0, done.stderr
    return folder / "a", done.stdout


def test_a_run_leaves_everything_in_its_folder(trained):
    folder, output = trained
    names = {path.name for path in folder.iterdir()}
    assert names >= {
        "config.json",
        "metrics.csv",
        "learning_curve.png",
        "checkpoint.pt",
        "tensorboard",
        "past",
        "model.json",
        "evaluation.json",
    }
    assert json.loads((folder / "config.json").read_text())["timesteps"] == 4096
    result = json.loads((folder / "evaluation.json").read_text())
    assert {row["opponent"] for row in result["pairings"]} == {"random", "greedy", "expectimax"}
    assert all(row["games"] == 8 for row in result["pairings"])
    assert steps_of(folder)[-1] == 4096
    for word in ("random", "greedy", "expectimax", "share %", "evaluate.py"):
        assert word in output
    assert re.search(r"past/0000003072 .* % won, in .* % of the games", output)
    assert "won against it while it learned (average of some 500 games" in output


def test_the_final_evaluation_shows_its_progress_and_where_its_seed_is_from(trained):
    assert "measuring it in 24 games (seed 4294967296 = 2**32 + --seed)" in trained[1]
    assert re.search(r"^measuring .*100 %", trained[1], re.MULTILINE)


def test_both_algorithms_tell_alike_how_a_model_was_made(trained, trained_value):
    for folder, algorithm in ((trained[0], "ppo"), (trained_value, "value")):
        made = json.loads((folder / "model.json").read_text())["trained_by"]
        words = r"seed 0, \d+\.\d minutes without evaluations, on .+"
        assert re.fullmatch(rf"train\.py --algorithm {algorithm}, {words}", made)


def test_the_trained_agent_can_be_loaded_and_played(trained):
    from marrakech_env import arena

    result = arena.play([str(trained[0])], deals=2, field=["random"])
    assert result.pairings[0].games == 4


def test_a_seed_fixes_a_run_of_so_many_timesteps(trained):
    again = run(command(trained[0].parent, "--timesteps", "4096", "--name", "b", *SMALL))
    assert again.returncode == 0, again.stderr
    assert sha256_of(trained[0]) == sha256_of(trained[0].parent / "b")


def kill_and_resume(folder, options, kills, seed):
    """Starts a run, kills it at random moments, resumes it each time, and lets it finish."""
    rng = random.Random(seed)
    arguments = command(folder, "--name", "killed", *options)
    continued = 0
    for _ in range(kills):
        process = subprocess.Popen(
            arguments,
            cwd=ROOT,
            env=ENVIRONMENT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        checkpoint = folder / "killed" / "checkpoint.pt"
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline and process.poll() is None:
            if checkpoint.exists() and checkpoint.stat().st_mtime_ns > before:
                time.sleep(rng.uniform(0, 1.5))
                break
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        output = process.communicate()[0]
        continued += "continued from the checkpoint at" in output
        arguments = [sys.executable, str(ROOT / "train.py"), "--resume", str(folder / "killed")]
    done = run(arguments)
    assert done.returncode == 0, done.stderr
    continued += "continued from the checkpoint at" in done.stdout
    return continued


def assert_whole(folder, length, round_size=16 * 32):
    """A finished run whose learning curve has no gap, no step back and no doubled step."""
    steps = steps_of(folder)
    assert steps == sorted(set(steps))
    assert steps[-1] >= length
    gaps = [b - a for a, b in zip([0, *steps], steps, strict=False)]
    assert max(gaps) <= length / 4 + 2 * round_size
    assert (folder / "evaluation.json").exists()
    assert not list(folder.glob(".*.tmp"))


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_run_goes_on_from_its_checkpoint(tmp_path):
    assert kill_and_resume(tmp_path, ["--timesteps", "30000", *SMALL], kills=1, seed=1) == 1
    assert_whole(tmp_path / "killed", 30_000)


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_run_killed_three_times_finishes_without_a_gap(tmp_path):
    assert kill_and_resume(tmp_path, ["--timesteps", "150000", *SMALL], kills=3, seed=2) == 3
    assert_whole(tmp_path / "killed", 150_000)


@pytest.fixture(scope="module")
def trained_value(tmp_path_factory):
    """A small run of the value network, killed and resumed."""
    folder = tmp_path_factory.mktemp("value")
    if os.name == "nt":  # which has no SIGKILL
        done = run(command(folder, "--name", "killed", "--games", "400", *VALUE))
        assert done.returncode == 0, done.stderr
    else:
        options = ["--games", "400", "--workers", "1", *VALUE]
        assert kill_and_resume(folder, options, kills=1, seed=3) == 1
    return folder / "killed"


def test_a_value_network_has_the_same_run_folder(trained_value, trained):
    assert {path.name.split("-")[0] for path in trained_value.iterdir()} == {
        path.name.split("-")[0] for path in trained[0].iterdir()
    }
    assert_whole(trained_value, 400, round_size=128)
    assert steps_of(trained_value)[-1] == 512
    assert json.loads((trained_value / "model.json").read_text())["kind"] == "value"


def test_a_killed_run_of_the_value_network_learns_the_same(trained_value, tmp_path):
    """The weights are those of a trainer that nobody interrupted."""
    from marrakech_agents.training.temporal_difference import Settings, TDTrainer

    trainer = TDTrainer(2, settings=Settings(games=400))
    while trainer.done < 1:
        trainer.round()
    trainer.save(tmp_path)
    assert sha256_of(trained_value) == sha256_of(tmp_path)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
def test_ctrl_c_keeps_the_last_whole_round(tmp_path):
    arguments = command(tmp_path, "--name", "stopped", "--games", "100000", *VALUE)
    arguments += ["--checkpoint-minutes", "1000"]
    process = subprocess.Popen(
        arguments,
        cwd=ROOT,
        env=ENVIRONMENT,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that starts the tests in the background lets them, and so the child, ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    log = tmp_path / "stopped" / "tensorboard"
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        if any(file.stat().st_size > 200 for file in log.glob("*")):  # after a round
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    message = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 130
    assert f"--resume {tmp_path / 'stopped'}" in message
    assert "Traceback" not in message

    import torch

    state = torch.load(tmp_path / "stopped" / "checkpoint.pt", weights_only=True)["trainer"]
    assert state["num_games"] > 0
    assert state["num_games"] % 128 == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--opponents", "greeedy"], "unknown agent 'greeedy'; known names:"),
        (["--opponents", "greedy:0"], "weight of 'greedy' must be above 0"),
        (["--opponents", "greedy,greedy:2"], "'greedy' stands twice"),
        (["--opponents", ","], "names nobody"),
        (["--rules", "offical"], "unknown preset 'offical'; known: official"),
        (["--players", "5"], "5"),
        (["--reward", "money"], "dense"),
        (["--algorithm", "td"], "ppo"),
        (["--games", "5"], "--games is an option of --algorithm value only"),
        (["--algorithm", "value", "--timesteps", "5"], "--timesteps is an option of .* ppo only"),
        (["--algorithm", "value", "--num-envs", "8"], "--num-envs is an option of .* ppo only"),
        (["--timesteps", "5", "--minutes", "1"], "give either --minutes or --timesteps"),
        (["--timesteps", "5", "--minutes", "5"], "give either --minutes or --timesteps"),
        (["--algorithm", "value", "--games", "5", "--minutes", "5"], "either --minutes or --games"),
        (["--hardness", "-1"], r"hardness must be 0\.\.10, not -1"),
        (["--minutes", "nan"], "--minutes must be above 0, not nan"),
        (["--final-deals", "0"], "--final-deals must be at least 1, not 0"),
        (["--final-deals", "20000000"], "--final-deals must be at most 10,000,000, not 20,000,000"),
        (["--evaluation-deals", "20000000"], "--evaluation-deals must be at most 10,000,000"),
        (["--seed", "-1"], r"--seed must be 0\.\.4294967295, not -1"),
        (["--observation", "flat"], "--network scorer wants --observation features"),
        (["--epochs", "0"], "epochs must be at least 1, not 0"),
        (["--gamma", "nan"], r"gamma must be 0\.\.1, not nan"),
        (["--num-envs", "0"], "num_games|num_envs"),
        (["--resume", "nowhere"], "cannot resume nowhere.* no such folder"),
        (["--resume", "nowhere", "--seed", "3"], "leave out: .*seed"),
    ],
)
def test_bad_arguments_are_refused_before_a_folder_is_made(tmp_path, arguments, message):
    done = run(
        command(tmp_path / "runs", *arguments)
        if "--resume" not in arguments
        else [sys.executable, str(ROOT / "train.py"), *arguments]
    )
    assert done.returncode == 2
    assert re.search(message, done.stderr + done.stdout)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_an_existing_run_is_not_written_over(trained):
    done = run(command(trained[0].parent, "--name", "a", "--timesteps", "1"))
    assert done.returncode != 0
    assert "exists already" in done.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"timesteps": "5"}, 'timesteps must be int or null, not "5"'),
        ({"minutes": [1]}, r"minutes must be float or null, not \[1\]"),
        ({"evaluations": "5"}, 'evaluations must be int, not "5"'),
        ({"seed": None}, "seed must be int, not null"),
        ({"seed": True}, "seed must be int, not true"),
        ({"seed": -1}, r"--seed must be 0\.\.4294967295, not -1"),
        ({"players": 2.0}, r"players must be 2 or 3 or 4, not 2\.0"),
        ({"sed": 0}, "sed is no setting of this version"),
        ({"ppo": {"gamma": "x"}}, 'gamma must be float, not "x"'),
        ({"ppo": {"batch_size": None}}, "batch_size must be int, not null"),
        ({"ppo": {"hidden": 3.5}}, r"hidden must be int, not 3\.5"),
        ({"ppo": {"opponents": 5}}, "opponents must be str, not 5"),
        ({"ppo": {"network": "cnn"}}, "network must be 'scorer' or 'mlp', not \"cnn\""),
        ({"ppo": 5}, "the settings must be an object, not 5"),
    ],
)
def test_wrong_settings_in_the_file_of_a_run_are_named(train, tmp_path, capsys, change, message):
    (tmp_path / "config.json").write_text(json.dumps(change))
    assert train.main(train.Config(resume=tmp_path)) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"train.py: {tmp_path / 'config.json'}: ")
    assert re.search(message, told)


def test_whole_numbers_and_null_are_taken_where_they_fit(train):
    from marrakech_agents.training.run_folder import from_json

    values = {"minutes": 5, "timesteps": None, "players": 3, "ppo": {"network": "mlp"}}
    config = from_json(values, train.Config)
    assert config == train.Config(minutes=5, players=3, ppo=train.PPOSettings(network="mlp"))


def test_a_run_that_was_killed_before_its_settings_were_written_can_be_started(tmp_path):
    from marrakech_agents.training.run_folder import RunFolder

    folder = tmp_path / "a"
    folder.mkdir()
    (folder / ".lock").touch()
    (folder / ".config.json.1.tmp").touch()
    with pytest.raises(ValueError, match=r"it has no config\.json"):
        RunFolder.open(folder)
    RunFolder.create(folder, {"seed": 1})
    assert RunFolder.open(folder).settings == {"seed": 1}


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    from marrakech_agents.training.run_folder import RunFolder

    (tmp_path / "thesis.tex").touch()
    with pytest.raises(FileExistsError):
        RunFolder.create(tmp_path, {})
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_run_is_trained_by_one_process_at_a_time(trained, tmp_path):
    from marrakech_agents.training.run_folder import BusyError, RunFolder

    folder = tmp_path / "a"
    shutil.copytree(trained[0], folder)
    run_folder = RunFolder.open(folder)
    done = run([sys.executable, str(ROOT / "train.py"), "--resume", str(folder)])
    assert done.returncode != 0
    assert f"train.py: {folder} is in use: another process is training there" in done.stderr
    with pytest.raises(BusyError):
        RunFolder.open(folder)
    del run_folder
    RunFolder.open(folder)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_process_leaves_no_lock_behind(tmp_path):
    from marrakech_agents.training.run_folder import BusyError, RunFolder

    code = (
        "import sys, time, pathlib\nfrom marrakech_agents.training.run_folder import RunFolder\n"
        "run = RunFolder.create(pathlib.Path(sys.argv[1]), {})\nprint(flush=True)\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "a")], stdout=subprocess.PIPE
    )
    process.stdout.readline()
    with pytest.raises(BusyError):
        RunFolder.open(tmp_path / "a")
    process.kill()
    process.communicate()
    assert RunFolder.open(tmp_path / "a").settings == {}


def test_a_resumed_run_clears_away_what_a_killed_one_had_half_written(tmp_path):
    from marrakech_agents.training.run_folder import RunFolder

    RunFolder.create(tmp_path / "a", {}).keep_version(lambda folder: None, steps=1)
    for name in ("checkpoint.pt", "past/0000000001/model.json"):
        writes_and_dies = (
            "import os, pathlib, sys\nfrom marrakech_env.files import write_atomically\n"
            "os.fsync = lambda _: os._exit(9)\n"
            "write_atomically(pathlib.Path(sys.argv[1]), b'half')"
        )
        path = tmp_path / "a" / name
        subprocess.run([sys.executable, "-c", writes_and_dies, str(path)], env=ENVIRONMENT)
        assert not path.exists()
        assert len(list(path.parent.glob(".*.tmp"))) == 1
    RunFolder.open(tmp_path / "a")
    assert not list(tmp_path.rglob(".*.tmp"))


def test_the_bar_of_a_resumed_run_counts_from_the_start_of_the_run(tmp_path):
    from marrakech_agents.training.run_folder import RunFolder

    class Learner:
        unit, steps = "decisions", 30

        def prepare(self, logger):
            pass

        def state(self):
            return {}

    train = runpy.run_path(str(ROOT / "train.py"))
    run_folder = RunFolder.create(tmp_path / "a", {})
    run_folder.elapsed = 90.0
    with train["progress_bar"]() as bar:
        train["Training"](train["Config"](timesteps=40), run_folder, Learner(), bar)
        assert 90 <= bar.tasks[0].elapsed < 150
        assert bar.tasks[0].percentage == 75


def test_an_unwritable_folder_is_told_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    done = run(command(tmp_path / "file" / "runs", "--timesteps", "1"))
    assert done.returncode != 0
    assert "train.py: " in done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_checkpoint_is_told_and_left_alone(trained, tmp_path):
    folder = tmp_path / "damaged"
    shutil.copytree(trained[0], folder)
    (folder / "checkpoint.pt").write_bytes(b"no checkpoint")
    done = run([sys.executable, str(ROOT / "train.py"), "--resume", str(folder)])
    assert done.returncode != 0
    assert f"cannot resume {folder}" in done.stderr
    assert (folder / "checkpoint.pt").read_bytes() == b"no checkpoint"


def test_a_checkpoint_of_another_network_is_told(trained, tmp_path):
    folder = tmp_path / "other"
    shutil.copytree(trained[0], folder)
    settings = json.loads((folder / "config.json").read_text())
    settings["ppo"]["hidden"] = 8
    (folder / "config.json").write_text(json.dumps(settings))
    done = run([sys.executable, str(ROOT / "train.py"), "--resume", str(folder)])
    assert done.returncode != 0
    assert f"the checkpoint in {folder} does not fit" in done.stderr
    assert "Traceback" not in done.stderr


STOPPED = """
import runpy, sys
from marrakech_env.arena import Tournament
play_round = Tournament.play_round
def stopped(self, line_up, *arguments):
    if self.deals == 4 and line_up == 1:  # in the final evaluation, after the first opponent
        raise KeyboardInterrupt
    play_round(self, line_up, *arguments)
Tournament.play_round = stopped
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_ctrl_c_in_the_final_evaluation_keeps_what_was_measured(tmp_path):
    """Also where the name has a blank and brackets, and past versions were deleted since."""
    folder, rules = tmp_path / "a [red] b", "official;money=20"
    arguments = command(tmp_path, "--timesteps", "1024", "--name", folder.name, *SMALL)
    done = run([sys.executable, "-c", STOPPED, *arguments[1:], "--rules", rules])
    assert done.returncode == 130
    assert f"run folder: {folder}\n" in done.stdout
    words = ["evaluate.py", str(folder), "--field", "random,greedy,expectimax", "--players", "2"]
    words += ["--seed", "4294967296", "--games", "8", "--rules", rules]
    again = f"python {shlex.join(words)}\n"
    assert f"stopped; the agent is saved; measure it with: {again}" in done.stderr
    assert "Traceback" not in done.stderr
    assert (folder / "model.json").exists()
    result = json.loads((folder / "evaluation.json").read_text())
    assert [row["opponent"] for row in result["pairings"]] == ["random"]
    assert not result["complete"]

    shutil.rmtree(folder / "past")
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "timesteps": 2048}))
    done = run([sys.executable, str(ROOT / "train.py"), "--resume", str(folder)])
    assert done.returncode == 0, done.stderr
    assert f"again: {again}" in done.stdout


FULL_DISK = """
import resource, runpy, sys
from marrakech_agents.training.ppo_learner import PPOLearner
advance, rounds = PPOLearner.advance, []
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
def full(self, *arguments):
    rounds.append(None)
    # No file may grow while this holds: the system refuses every write, as on a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0 if 3 <= len(rounds) <= 5 else hard, hard))
    advance(self, *arguments)
PPOLearner.advance = full
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit for the size of files")
def test_a_full_disk_while_training_costs_rounds_of_the_log_not_the_run(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    arguments = command(tmp_path, "--timesteps", "4096", "--name", "full", *SMALL)
    done = run([sys.executable, "-c", FULL_DISK, *arguments[1:]])
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    output = done.stdout.replace("\n", " ")
    for what in ("write the checkpoint", "keep this version", "write .*/events"):
        assert len(re.findall(rf"cannot {what}", output)) == 1
    assert (tmp_path / "full" / "evaluation.json").exists()
    assert steps_of(tmp_path / "full")[-1] == 4096
    log = EventAccumulator(str(tmp_path / "full" / "tensorboard")).Reload()
    logged = {event.step for event in log.Scalars("train/loss")}
    assert {512, 1024, 4096} <= logged
    assert logged.isdisjoint({1536, 2048, 2560})


def test_a_missing_package_names_the_extra():
    code = (
        "import runpy, sys\nsys.modules['tyro'] = None\n"
        f"runpy.run_path({str(ROOT / 'train.py')!r}, run_name='__main__')"
    )
    done = run([sys.executable, "-c", code])
    assert done.returncode == 2
    assert done.stderr == "train.py needs tyro: pip install -e '.[train]' (in the clone)\n"


def test_help_explains_every_field_with_its_default():
    done = run([sys.executable, str(ROOT / "train.py"), "--help"])
    for words in (
        "--minutes",
        "5.0",
        "--timesteps",
        "--games",
        "Only with --algorithm ppo",
        "--resume",
        "--opponents",
        "fixes the run",
        "two to five minutes",
    ):
        assert words in done.stdout
