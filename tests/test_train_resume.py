"""train.py: runs that are killed or stopped, and what --resume makes of them."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial

import pytest
from train_runs import (
    PATIENCE,
    ROOT,
    SMALL,
    VALUE,
    command,
    environment,
    logged_steps,
    scripted,
    sha256_of,
    steps_of,
    train,
    versions_of,
)

no_signals = pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")

# Kills the run in the third round; the checkpoint of the second one fails.
KILLED = """
import os, signal, sys
from marrakech_agents.training.run_folder import RunFolder
from marrakech_agents.training.value_learner import ValueLearner
advance, save_checkpoint = ValueLearner.advance, RunFolder.save_checkpoint
def advance_or_die(self, *arguments):
    if self.steps == 256:
        os.kill(os.getpid(), signal.SIGKILL)
    advance(self, *arguments)
def save_one(self, state, *arguments):
    if state["num_games"] > 128:
        raise OSError("no")
    save_checkpoint(self, state, *arguments)
ValueLearner.advance, RunFolder.save_checkpoint = advance_or_die, save_one
"""
GAMES = ["--games", "384", "--checkpoint-minutes", "0", "--evaluations", "3"]


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A run of value that was killed one round after its last checkpoint."""
    folder = tmp_path_factory.mktemp("killed")
    arguments = ["--folder", str(folder), "--name", "a", *VALUE, *GAMES]
    done = subprocess.run(
        scripted(KILLED, *arguments), env=environment(), capture_output=True, text=True
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    folder = folder / "a"
    assert steps_of(folder) == [128]
    assert versions_of(folder) == [128, 256]
    (folder / ".checkpoint.pt.7-00.tmp").write_bytes(b"half")
    return folder


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The same run without a break."""
    folder = tmp_path_factory.mktemp("whole")
    assert train("--folder", str(folder), "--name", "a", *VALUE, *GAMES)[0] == 0
    return folder / "a"


def assert_same_run(folder, whole):
    assert sha256_of(folder) == sha256_of(whole)
    assert steps_of(folder) == steps_of(whole) == [128, 256, 384]
    assert versions_of(folder) == versions_of(whole)
    for name in ("train/loss_win", "evaluation/win_share_greedy"):
        assert logged_steps(folder, name) == logged_steps(whole, name) == steps_of(whole)
    assert not list(folder.rglob(".*.tmp"))


@no_signals
def test_a_killed_run_goes_on_from_its_checkpoint_as_one_run(killed, whole, tmp_path):
    folder = shutil.copytree(killed, tmp_path / "a")
    code, output, messages = train("--resume", str(folder))
    assert code == 0, messages
    assert re.search(r"continued from the checkpoint at 128 games, \d\.\d minutes", output)
    assert_same_run(folder, whole)


@no_signals
def test_a_run_killed_before_its_first_checkpoint_starts_anew(killed, whole, tmp_path):
    folder = shutil.copytree(killed, tmp_path / "a")
    (folder / "checkpoint.pt").unlink()
    code, output, messages = train("--resume", str(folder))
    assert code == 0, messages
    assert "this run has no checkpoint yet; the training starts anew" in output
    assert_same_run(folder, whole)


@no_signals
def test_a_resumed_run_goes_back_to_its_checkpoint_before_it_goes_on(killed, tmp_path, monkeypatch):
    from marrakech_agents.training.value_learner import ValueLearner

    folder = shutil.copytree(killed, tmp_path / "a")
    (folder / "past" / "notes").mkdir()
    (folder / "metrics.csv").write_text("steps\n1\n")
    stopped_at_once(monkeypatch, ValueLearner)
    assert train("--resume", str(folder))[0] == 130
    assert steps_of(folder) == logged_steps(folder, "train/loss_win") == [128]
    kept = sorted(path.name for path in (folder / "past").iterdir())
    assert kept == ["0000000128", "notes"]
    (folder / "checkpoint.pt").unlink()
    assert train("--resume", str(folder))[0] == 130
    assert [path.name for path in (folder / "past").iterdir()] == ["notes"]
    assert not (folder / "metrics.csv").exists()
    assert not (folder / "learning_curve.png").exists()


def stopped_at_once(monkeypatch, learner):
    def advance(self, *arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(learner, "advance", advance)


@no_signals
@pytest.mark.parametrize("damage", ["checkpoint", "settings", "other options"])
def test_a_run_that_cannot_be_resumed_is_left_as_it_is(killed, tmp_path, damage):
    folder, arguments = shutil.copytree(killed, tmp_path / "a"), []
    settings = json.loads((folder / "config.json").read_text())
    if damage == "checkpoint":
        (folder / "checkpoint.pt").write_bytes(b"no checkpoint")
        message = f"cannot resume {folder}, its checkpoint.pt is damaged: "
    elif damage == "settings":
        settings |= {"algorithm": "ppo", "ppo": {"hidden": 8}}
        del settings["value"]
        (folder / "config.json").write_text(json.dumps(settings))
        message = f"the checkpoint in {folder} does not fit"
    else:
        arguments, message = ["--seed", "1"], "leave out: --seed"
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    code, _, messages = train("--resume", str(folder), *arguments)
    assert code == 2
    assert message in messages
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after.keys() - before.keys() <= {folder / ".lock"}
    assert {path: after[path] for path in before} == before


def test_a_resumed_ppo_run_has_one_curve_also_without_its_past_versions(tmp_path, monkeypatch):
    from marrakech_agents.training.ppo_learner import PPOLearner

    folder = tmp_path / "a"
    with monkeypatch.context() as patch:
        advance = PPOLearner.advance

        def stopped(self, *arguments):
            if self.steps == 1536:
                raise KeyboardInterrupt
            advance(self, *arguments)

        patch.setattr(PPOLearner, "advance", stopped)
        arguments = ["--timesteps", "3072", "--name", "a", *SMALL]
        code, _, messages = train("--folder", str(tmp_path), *arguments)
    assert code == 130
    assert f"stopped; go on with: python train.py --resume {folder}\n" in messages
    shutil.rmtree(folder / "past")
    time.sleep(1)  # a process takes longer to start; the names of event files hold the second
    code, output, messages = train("--resume", str(folder))
    assert code == 0, messages
    assert "continued from the checkpoint at 1,536 decisions" in output
    assert logged_steps(folder, "train/loss") == [512, 1024, 1536, 2048, 2560, 3072]
    assert steps_of(folder) == logged_steps(folder, "evaluation/margin_greedy")
    assert steps_of(folder)[-1] == 3072


def test_ctrl_c_keeps_the_last_whole_round(tmp_path, monkeypatch):
    import torch

    from marrakech_agents.training.temporal_difference import TDTrainer

    learn = TDTrainer._learn

    def stopped(self, *arguments):
        if self.num_games == 256:
            raise KeyboardInterrupt
        return learn(self, *arguments)

    monkeypatch.setattr(TDTrainer, "_learn", stopped)
    arguments = ["--games", "100000", *VALUE, "--checkpoint-minutes", "1000"]
    code, _, messages = train("--folder", str(tmp_path), "--name", "a", *arguments)
    assert code == 130
    assert f"--resume {tmp_path / 'a'}" in messages
    saved = torch.load(tmp_path / "a" / "checkpoint.pt", weights_only=True)
    assert saved["trainer"]["num_games"] == 256


@no_signals
@pytest.mark.parametrize("name", ["SIGTERM"])
def test_a_signal_to_stop_leaves_a_checkpoint(tmp_path, name):
    folder = tmp_path / "a"
    arguments = ["--name", "a", "--games", "100000", *VALUE, "--checkpoint-minutes", "1000"]
    arguments += ["--evaluations", "500"]
    process = subprocess.Popen(
        command(tmp_path, *arguments),
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for(process, (folder / "past").exists)
    process.send_signal(signal.Signals[name])
    _, messages = process.communicate(timeout=PATIENCE)
    assert process.returncode == 128 + signal.Signals[name]
    expected = f"\nstopped by {name}; go on with: python train.py --resume {folder}\n"
    assert messages == expected
    assert (folder / "checkpoint.pt").exists()
    assert set(versions_of(folder)) <= set(steps_of(folder))


def wait_for(process, happened):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None and not happened():
        time.sleep(0.05)


def is_newer(file, before):
    return file.exists() and file.stat().st_mtime_ns > before


def kill_and_resume(folder, options, kills, seed):
    """Start a run, kill it at random moments, resume it each time, and let it finish."""
    rng = random.Random(seed)
    arguments = command(folder, "--name", "killed", *options)
    checkpoint = folder / "killed" / "checkpoint.pt"
    for _ in range(kills):
        process = subprocess.Popen(
            arguments, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT
        )
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        wait_for(process, partial(is_newer, checkpoint, before))
        time.sleep(rng.uniform(0, 1.5))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        arguments = [sys.executable, str(ROOT / "train.py"), "--resume", str(folder / "killed")]
    done = subprocess.run(arguments, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "continued from the checkpoint at" in done.stdout


@pytest.mark.long
@no_signals
def test_a_run_killed_three_times_finishes_without_a_gap(tmp_path):
    kill_and_resume(tmp_path, ["--timesteps", "150000", *SMALL], kills=3, seed=2)
    folder = tmp_path / "killed"
    assert steps_of(folder)[-1] >= 150_000
    assert versions_of(folder) == steps_of(folder) == sorted(set(steps_of(folder)))
    assert logged_steps(folder, "train/loss") == list(range(512, steps_of(folder)[-1] + 1, 512))
    assert not list(folder.rglob(".*.tmp"))


# No file may grow in rounds 3 to 5: the system refuses every write, as on a full disk.
FULL_DISK = """
import resource, sys
from marrakech_agents.training.ppo_learner import PPOLearner
advance, rounds = PPOLearner.advance, []
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
def full(self, *arguments):
    rounds.append(None)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0 if 3 <= len(rounds) <= 5 else hard, hard))
    advance(self, *arguments)
PPOLearner.advance = full
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no limit for the size of files")
def test_a_full_disk_while_training_costs_rounds_of_the_log_not_the_run(tmp_path):
    arguments = ["--folder", str(tmp_path), "--timesteps", "4096", "--name", "full", *SMALL]
    done = subprocess.run(
        scripted(FULL_DISK, *arguments), env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    output = done.stdout.replace("\n", " ")
    for what in ("write the checkpoint", "keep this version", "write in .*/tensorboard"):
        assert len(re.findall(rf"cannot {what}", output)) == 1
    folder = tmp_path / "full"
    assert (folder / "evaluation.json").exists()
    assert steps_of(folder)[-1] == 4096
    assert logged_steps(folder, "train/loss") == [512, 1024, 3072, 3584, 4096]
