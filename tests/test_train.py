"""train.py: a run from start to end, kills and resumes, what is refused."""

import csv
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
    from marrakech_agents.td import Settings, TDTrainer

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
    assert process.returncode != 0
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
        (["--seed", "-1"], r"--seed must be 0\.\.4294967295, not -1"),
        (["--observation", "flat"], "--network scorer wants --observation features"),
        (["--epochs", "0"], "epochs must be at least 1, not 0"),
        (["--gamma", "nan"], r"gamma must be 0\.\.1, not nan"),
        (["--num-envs", "0"], "num_games|num_envs"),
        (["--resume", "nowhere"], "cannot resume nowhere"),
        (["--resume", "nowhere", "--seed", "3"], "leave out: .*seed"),
    ],
)
def test_bad_arguments_are_refused_before_a_folder_is_made(tmp_path, arguments, message):
    done = run(
        command(tmp_path / "runs", *arguments)
        if "--resume" not in arguments
        else [sys.executable, str(ROOT / "train.py"), *arguments]
    )
    assert done.returncode != 0
    assert re.search(message, done.stderr + done.stdout)
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_an_existing_run_is_not_written_over(trained):
    done = run(command(trained[0].parent, "--name", "a", "--timesteps", "1"))
    assert done.returncode != 0
    assert "exists already" in done.stderr


def test_a_run_is_trained_by_one_process_at_a_time(trained, tmp_path):
    from marrakech_agents.runs import BusyError, RunFolder

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
    from marrakech_agents.runs import BusyError, RunFolder

    code = (
        "import sys, time, pathlib\nfrom marrakech_agents.runs import RunFolder\n"
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
    from marrakech_agents.runs import RunFolder

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
    from marrakech_agents.runs import RunFolder

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
from marrakech_env import arena
play = arena.play
def stopped(*arguments, **named):
    if arguments[3:4] == (4,):  # the deals of the final evaluation
        raise KeyboardInterrupt
    return play(*arguments, **named)
arena.play = stopped
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_ctrl_c_in_the_final_evaluation_tells_how_to_go_on(tmp_path):
    """Also where the name has a blank and brackets, and past versions were deleted since."""
    folder, rules = tmp_path / "a [red] b", "official;money=20"
    arguments = command(tmp_path, "--timesteps", "1024", "--name", folder.name, *SMALL)
    done = run([sys.executable, "-c", STOPPED, *arguments[1:], "--rules", rules])
    assert done.returncode != 0
    assert f"run folder: {folder}\n" in done.stdout
    assert f"go on with: python train.py --resume {shlex.quote(str(folder))}\n" in done.stderr
    assert "Traceback" not in done.stderr

    shutil.rmtree(folder / "past")
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**settings, "timesteps": 2048}))
    done = run([sys.executable, str(ROOT / "train.py"), "--resume", str(folder)])
    assert done.returncode == 0, done.stderr
    words = ["evaluate.py", str(folder), "--field", "random,greedy,expectimax", "--players", "2"]
    assert f"again: python {shlex.join(words)} --seed 4294967296 --games " in done.stdout
    assert f" --rules {shlex.quote(rules)}\n" in done.stdout


FULL_DISK = """
import sys
import marrakech_agents.runs as runs
import marrakech_agents.models as models
real, calls = runs.write_atomically, []
def full(path, data):
    calls.append(path)
    if 3 <= len(calls) <= 8:
        raise OSError(28, "No space left on device", str(path))
    real(path, data)
runs.write_atomically = models.write_atomically = full
sys.argv = sys.argv[1:]
import runpy
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_a_full_disk_while_training_costs_checkpoints_not_the_run(tmp_path):
    arguments = command(tmp_path, "--timesteps", "4096", "--name", "full", *SMALL)
    done = run([sys.executable, "-c", FULL_DISK, *arguments[1:]])
    assert done.returncode == 0, done.stderr
    assert "No space left" in done.stdout
    assert (tmp_path / "full" / "evaluation.json").exists()


def test_a_missing_package_names_the_extra():
    code = (
        "import runpy, sys\nsys.modules['tyro'] = None\n"
        f"runpy.run_path({str(ROOT / 'train.py')!r}, run_name='__main__')"
    )
    done = run([sys.executable, "-c", code])
    assert done.returncode == 1
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
    ):
        assert words in done.stdout
