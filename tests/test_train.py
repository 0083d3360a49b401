"""train.py: a run from start to end, with both algorithms."""

import io
import json
import os
import re
import runpy
import shlex
import sys

import pytest
from train_runs import ROOT, SMALL, VALUE, logged_steps, sha256_of, steps_of, train

from marrakech_agents.training.command import main
from marrakech_env import arena
from marrakech_env.arena import Tournament
from marrakech_env.command_line import run_command


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A finished small run of ppo."""
    folder = tmp_path_factory.mktemp("runs")
    code, output, messages = train(
        "--folder", str(folder), "--timesteps", "4096", "--name", "a", *SMALL
    )
    assert code == 0, messages
    return folder / "a", output


@pytest.fixture(scope="module")
def trained_value(tmp_path_factory):
    """A finished small run of value."""
    folder = tmp_path_factory.mktemp("runs")
    code, _, messages = train("--folder", str(folder), "--games", "256", "--name", "a", *VALUE)
    assert code == 0, messages
    return folder / "a"


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
    assert json.loads((folder / "config.json").read_text())["ppo"]["timesteps"] == 4096
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


def test_a_value_network_has_the_same_run_folder(trained_value, trained):
    assert {path.name.split("-")[0] for path in trained_value.iterdir()} == {
        path.name.split("-")[0] for path in trained[0].iterdir()
    }
    assert steps_of(trained_value) == [128, 256]
    assert json.loads((trained_value / "model.json").read_text())["kind"] == "value"


def test_both_algorithms_tell_alike_how_a_model_was_made(trained, trained_value):
    for folder, algorithm in ((trained[0], "ppo"), (trained_value, "value")):
        made = json.loads((folder / "model.json").read_text())["trained_by"]
        words = r"seed 0, \d+\.\d minutes without evaluations, on .+"
        assert re.fullmatch(rf"train\.py --algorithm {algorithm}, {words}", made)


def test_the_trained_agent_can_be_loaded_and_played(trained):
    result = arena.play([str(trained[0])], deals=2, field=["random"])
    assert result.pairings[0].games == 4


def test_a_seed_fixes_a_run_of_so_many_timesteps(trained, tmp_path):
    assert train("--folder", str(tmp_path), "--timesteps", "4096", "--name", "b", *SMALL)[0] == 0
    assert sha256_of(trained[0]) == sha256_of(tmp_path / "b")


def test_an_existing_run_is_not_written_over(trained):
    folder = trained[0]
    code, _, messages = train("--folder", str(folder.parent), "--name", "a", "--timesteps", "1")
    assert code == 2
    assert f"{folder} exists already: take another --name, or --resume {folder}" in messages


@pytest.mark.parametrize("algorithm", ["ppo", "value"])
def test_without_evaluations_on_the_way_the_last_one_is_still_made(tmp_path, algorithm):
    length = "--timesteps" if algorithm == "ppo" else "--games"
    options = SMALL if algorithm == "ppo" else VALUE
    code, _, messages = train(
        *("--folder", str(tmp_path), "--name", "a", length, "100"), *options, "--evaluations", "0"
    )
    assert code == 0, messages
    assert steps_of(tmp_path / "a") == logged_steps(tmp_path / "a", "evaluation/win_share_greedy")


def closed_pipe():
    reading, writing = os.pipe()
    os.close(reading)
    return open(writing, "w")


@pytest.mark.parametrize(
    ("stream", "code"),
    [
        pytest.param(
            lambda: open("/dev/full", "w"),  # noqa: SIM115
            1,
            marks=pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full"),
            id="full disk",
        ),
        pytest.param(closed_pipe, 0, id="closed pipe"),
        pytest.param(lambda: io.TextIOWrapper(io.BytesIO(), "ascii"), 0, id="ascii terminal"),
    ],
)
def test_a_run_is_saved_and_measured_wherever_its_output_goes(tmp_path, monkeypatch, stream, code):
    messages = io.StringIO()
    arguments = ["--folder", str(tmp_path), "--name", "ü", "--games", "1", *VALUE]
    with stream() as output:
        monkeypatch.setattr(sys, "stdout", output)
        monkeypatch.setattr(sys, "stderr", messages)
        assert run_command(lambda: main(arguments)) == code
        monkeypatch.undo()
    for name in ("model.json", "evaluation.json", "checkpoint.pt"):
        assert (tmp_path / "ü" / name).exists()
    expected = "error: the standard output was not written: No space left on device\n"
    assert messages.getvalue() == (expected if code else "")


def test_ctrl_c_in_the_final_evaluation_keeps_what_was_measured(tmp_path, monkeypatch):
    """Also where the name has a blank and brackets."""
    play_round = Tournament.play_round

    def stopped(self, line_up, *arguments):
        if self.deals == 4 and line_up == 1:  # in the final evaluation, after the first opponent
            raise KeyboardInterrupt
        play_round(self, line_up, *arguments)

    folder, rules = tmp_path / "a [red] b", "official;money=20"
    arguments = ["--timesteps", "1024", "--name", folder.name, "--rules", rules, *SMALL]
    with monkeypatch.context() as patch:
        patch.setattr(Tournament, "play_round", stopped)
        code, output, messages = train("--folder", str(tmp_path), *arguments)
    assert code == 130
    assert f"run folder: {folder}\n" in output
    words = ["evaluate.py", str(folder), "--field", "random,greedy,expectimax", "--players", "2"]
    words += ["--seed", "4294967296", "--games", "8", "--rules", rules]
    again = f"python {shlex.join(words)}\n"
    assert f"stopped; the agent is saved; measure it with: {again}" in messages
    assert (folder / "model.json").exists()
    result = json.loads((folder / "evaluation.json").read_text())
    assert [row["opponent"] for row in result["pairings"]] == ["random"]
    assert not result["complete"]


def test_a_missing_package_names_the_extra(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "tyro", None)
    for name in ("command", "config"):
        monkeypatch.delitem(sys.modules, f"marrakech_agents.training.{name}", raising=False)
    monkeypatch.setattr(sys, "argv", ["train.py"])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(ROOT / "train.py"), run_name="__main__")
    assert end.value.code == 2
    assert capsys.readouterr().err == (
        "error: this command needs tyro: pip install 'marrakech-env[train]' "
        "(in a clone: pip install -e '.[train]')\n"
    )
