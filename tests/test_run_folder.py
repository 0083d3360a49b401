"""The folder of a run: who may use it, and its log for TensorBoard."""

import os
import subprocess
import sys
import time

import pytest
from rich.console import Console
from train_runs import logged_steps, train

from marrakech_agents.training.config import Config
from marrakech_agents.training.loop import Training, progress_bar
from marrakech_agents.training.ppo_learner import PPOSettings
from marrakech_agents.training.run_folder import BusyError, RunFolder
from marrakech_agents.training.tensorboard_log import TensorBoardLog


def test_a_run_that_was_killed_before_its_settings_were_written_can_be_started(tmp_path):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / ".lock").touch()
    (folder / ".config.json.1.tmp").touch()
    with pytest.raises(ValueError, match=r"it has no config\.json"):
        RunFolder.open(folder)
    RunFolder.create(folder, {"seed": 1}).close()
    assert RunFolder.open(folder).settings == {"seed": 1}


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(FileExistsError):
        RunFolder.create(tmp_path, {})
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_run_is_trained_by_one_process_at_a_time(tmp_path):
    folder = tmp_path / "a"
    run = RunFolder.create(folder, {})
    code, _, messages = train("--resume", str(folder))
    assert code == 2
    assert f"train.py: {folder} is in use: another process is training there" in messages
    with pytest.raises(BusyError):
        RunFolder.open(folder)
    run.close()
    RunFolder.open(folder)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_killed_process_leaves_no_lock_and_no_half_written_file_behind(tmp_path):
    run = RunFolder.create(tmp_path / "a", {})
    run.keep_version(lambda folder: None, steps=1)
    run.close()
    code = (
        "import os, pathlib, signal, sys\n"
        "from marrakech_agents.training.run_folder import RunFolder\n"
        "from marrakech_env.files import write_atomically\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "run = RunFolder.open(path)\n"
        "print(flush=True)\n"
        "input()\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        "write_atomically(path / 'past/0000000001/model.json', b'half')"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "a")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    process.stdout.readline()
    with pytest.raises(BusyError):
        RunFolder.open(tmp_path / "a")
    process.communicate(b"\n")
    assert len(list(tmp_path.rglob(".*.tmp"))) == 1
    run = RunFolder.open(tmp_path / "a")
    run.go_back("games")
    assert not list(tmp_path.rglob(".*.tmp"))


def test_the_bar_of_a_resumed_run_counts_from_the_start_of_the_run(tmp_path):
    class Learner:
        unit, steps = "decisions", 30

        def prepare(self, logger):
            pass

        def state(self):
            return {}

    run = RunFolder.create(tmp_path / "a", {})
    run.elapsed = 90.0
    with progress_bar(Console()) as bar:
        Training(Config(ppo=PPOSettings(timesteps=40)), run, Learner(), bar)
        assert 90 <= bar.tasks[0].elapsed < 150
        assert bar.tasks[0].percentage == 75


def write(log, step):
    log.write({"loss": 1.0 * step, "secret": 0.0}, {"loss": None, "secret": ("tensorboard",)}, step)


def test_the_log_goes_back_to_the_step_that_it_continues_from(tmp_path):
    told = []
    log = TensorBoardLog(tmp_path / "tensorboard", 0, told.append)
    for step in (10, 20, 30):
        write(log, step)
    log.close()
    time.sleep(1)  # the names of event files hold the second; TensorBoard reads them in this order
    log = TensorBoardLog(tmp_path / "tensorboard", 10, told.append)
    assert logged_steps(tmp_path, "loss") == [10]
    write(log, 15)
    assert logged_steps(tmp_path, "loss") == [10, 15]
    assert not told


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_round_that_the_writer_fails_at_is_left_out_as_a_whole(tmp_path, monkeypatch):
    """Even where the disk fills up between the look at its room and the writing."""
    from tensorboard.summary.writer.record_writer import RecordWriter

    told = []
    log = TensorBoardLog(tmp_path / "tensorboard", 0, told.append)
    write(log, 10)
    really_write = RecordWriter.write

    def half(self, data):
        really_write(self, data)
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(RecordWriter, "write", half)
        write(log, 20)
    time.sleep(1)
    write(log, 30)
    assert logged_steps(tmp_path, "loss") == [10, 30]
    assert len(told) == 1
    assert "No space left on device" in told[0]
