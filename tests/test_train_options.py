"""The options of train.py: what is refused, what --help tells, what config.json may hold."""

import dataclasses
import json
import re
import subprocess
import sys

import pytest
from train_runs import ROOT, train

from marrakech_agents.training.config import Config, from_json
from marrakech_agents.training.ppo_learner import PPOSettings
from marrakech_agents.training.value_learner import ValueSettings


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--opponents", "greeedy"], "unknown agent 'greeedy'; known names:"),
        (["--opponents", "greedy:0"], "weight of 'greedy' must be above 0"),
        (["--opponents", "greedy,greedy:2"], "names 'greedy' twice"),
        (["--opponents", ","], "names no agent"),
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
        (["--timesteps", "0"], "timesteps must be at least 1, not 0"),
        (["--algorithm", "value", "--games", "0"], "games must be at least 1, not 0"),
        (["--algorithm", "value", "--workers", "0"], "workers must be at least 1, not 0"),
        (["--algorithm", "value", "--guests", "2"], r"guests must be 0\.\.1, not 2"),
        (["--hardness", "-1"], r"hardness must be 0\.\.10, not -1"),
        (["--minutes", "nan"], "--minutes must be above 0, not nan"),
        (["--evaluations", "-1"], "--evaluations must be at least 0, not -1"),
        (["--checkpoint-minutes", "nan"], "--checkpoint-minutes must be at least 0, not nan"),
        (["--final-deals", "0"], r"--final-deals must be 1\.\.10,000,000, not 0"),
        (["--final-deals", "20000000"], r"--final-deals must be 1\.\.10,000,000, not 20,000,000"),
        (["--evaluation-deals", "20000000"], r"--evaluation-deals must be 1\.\.10,000,000"),
        (["--seed", "-1"], r"--seed must be 0\.\.4294967295, not -1"),
        (["--observation", "flat"], "--network scorer wants --observation features"),
        (["--epochs", "0"], "epochs must be at least 1, not 0"),
        (["--gamma", "nan"], r"gamma must be 0\.\.1, not nan"),
        (["--num-envs", "0"], "num_games|num_envs"),
        (["--teacher", "nobody"], "unknown agent 'nobody'"),
    ],
)
def test_bad_arguments_are_refused_before_a_folder_is_made(tmp_path, arguments, message):
    code, output, messages = train("--folder", str(tmp_path / "runs"), *arguments)
    assert code == 2
    assert re.search(message, output + messages)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--resume", "nowhere"], "cannot resume nowhere.* no such folder"),
        (["--resume", "nowhere", "--seed", "3"], "leave out: --seed"),
        (["--resume", "nowhere", "--timesteps", "3", "--games", "4"], "--timesteps, --games"),
    ],
)
def test_a_run_that_cannot_be_resumed_is_told(arguments, message):
    code, _, messages = train(*arguments)
    assert code == 2
    assert re.search(message, messages)


def test_an_unwritable_folder_is_told_at_once(tmp_path):
    (tmp_path / "file").write_text("")
    code, _, messages = train("--folder", str(tmp_path / "file" / "runs"), "--timesteps", "1")
    assert code == 2
    assert messages.startswith("train.py: ")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"minutes": [1]}, r"Expected `float \| null`, got `array` - at `\$\.minutes`"),
        ({"evaluations": "5"}, r"Expected `int`, got `str` - at `\$\.evaluations`"),
        ({"seed": None}, r"Expected `int`, got `null` - at `\$\.seed`"),
        ({"seed": True}, r"Expected `int`, got `bool` - at `\$\.seed`"),
        ({"seed": -1}, r"--seed must be 0\.\.4294967295, not -1"),
        ({"players": 5}, r"Invalid enum value 5 - at `\$\.players`"),
        ({"sed": 0}, "unknown setting 'sed'; known settings: .*seed"),
        ({"ppo": {"sed": 0}}, r"unknown setting 'ppo\.sed'"),
        ({"ppo": {"timesteps": "5"}}, r"Expected `int \| null`, got `str` - at `\$\.ppo\.timest"),
        ({"ppo": {"gamma": "x"}}, r"Expected `float`, got `str` - at `\$\.ppo\.gamma`"),
        ({"ppo": {"hidden": 3.5}}, r"Expected `int`, got `float` - at `\$\.ppo\.hidden`"),
        ({"ppo": {"network": "cnn"}}, r"Invalid enum value 'cnn' - at `\$\.ppo\.network`"),
        ({"ppo": 5}, r"Expected `object`, got `int` - at `\$\.ppo`"),
    ],
)
def test_wrong_settings_in_the_file_of_a_run_are_named(tmp_path, change, message):
    (tmp_path / "config.json").write_text(json.dumps(change))
    code, _, messages = train("--resume", str(tmp_path))
    assert code == 2
    assert messages.startswith(f"train.py: {tmp_path / 'config.json'}: ")
    assert re.search(message, messages)


def test_the_settings_of_a_run_are_read_back_from_its_file():
    config = Config(minutes=5.0, players=3, ppo=PPOSettings(network="mlp"))
    written = json.loads(json.dumps(config.as_json()))
    assert "value" not in written
    assert from_json(written) == config
    config = Config("value", seed=7, value=ValueSettings(games=5))
    assert from_json(config.as_json()) == config
    assert from_json({"minutes": 5, "name": None}) == Config(minutes=5.0)


def test_help_explains_every_option_under_its_algorithm():
    done = subprocess.run(
        [sys.executable, str(ROOT / "train.py"), "--help"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    common, ppo, value = re.split("─ (?:ppo|value) options ─", done.stdout)
    for settings, text in ((Config, common), (PPOSettings, ppo), (ValueSettings, value)):
        for field in dataclasses.fields(settings):
            if field.name not in ("ppo", "value"):
                assert f"--{field.name.replace('_', '-')} " in text
    assert "Only with --algorithm ppo" in ppo
    assert "Only with --algorithm value" in value
    assert "5.0" in common
    assert "agents/" not in done.stdout
