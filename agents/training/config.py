"""The settings of a run: the options of `train.py`, which config.json keeps."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import tyro

from marrakech_env.arena.tournament import MOST_DEALS

from .ppo_learner import PPOSettings
from .value_learner import ValueSettings

MINUTES = 5.0
"""Training time where no length is given."""


@dataclass
class Config:
    """Train an agent for Marrakech, then measure it."""

    algorithm: Literal["ppo", "value"] = "ppo"
    """ppo: MaskablePPO against a league of opponents. value: a value network that learns from
    self-play and looks one or two turns ahead. value is stronger after a minute than ppo after an
    hour, and slower to decide."""
    minutes: float | None = None
    """Training time in minutes, evaluations on the way included. The default is 5.0 where neither
    --timesteps nor --games is given."""
    players: Literal[2, 3, 4] = 2
    """Number of players."""
    rules: str = "official"
    """A preset (official, boardgamearena, comp1110) and options: official;steering=end."""
    seed: int = 0
    """With --timesteps or --games it fixes the run on one machine. With --minutes it fixes only the
    dice and the first weights, because the clock decides how much is learned."""
    name: str | None = None
    """Name of the run's folder below --folder. The default is the date and time."""
    folder: Path = Path("runs")
    """Folder of all runs."""
    resume: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """Folder of a run to continue. The run keeps its own settings, so this option stands alone."""

    evaluations: int = 15
    """Evaluations on the way, spread evenly. Each also keeps the agent as a past version."""
    evaluation_deals: int = 100
    """Deals of each evaluation; a deal is one game in every seat."""
    final_deals: int = 1000
    """Deals against each opponent in the final evaluation. 1000 deals take about 15 seconds with
    ppo and two to five minutes with value. Ctrl-C keeps what is measured by then."""
    checkpoint_minutes: float = 1.0
    """Minutes between two checkpoints: what a kill can cost."""

    ppo: tyro.conf.OmitArgPrefixes[PPOSettings] = field(default_factory=PPOSettings)
    value: tyro.conf.OmitArgPrefixes[ValueSettings] = field(default_factory=ValueSettings)

    @property
    def length(self) -> int | None:
        """Decisions (ppo) or games (value) to learn from; None where the minutes count."""
        return self.ppo.timesteps if self.algorithm == "ppo" else self.value.games

    def check(self) -> None:
        """Check what the types leave open and the learners do not check.

        Raises:
            ValueError: A number is out of range, or options do not go together.
        """
        other = "value" if self.algorithm == "ppo" else "ppo"
        for option in changed_options(self, Config()):
            if option.startswith(f"{other}."):
                raise ValueError(f"{flag(option)} is an option of --algorithm {other} only")
        if self.length is not None and self.minutes is not None:
            length = "--timesteps" if self.algorithm == "ppo" else "--games"
            raise ValueError(f"give either --minutes or {length}, not both")
        if self.minutes is not None and not self.minutes > 0:
            raise ValueError(f"--minutes must be above 0, not {self.minutes}")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"--seed must be 0..{2**32 - 1}, not {self.seed}")
        for name in ("evaluations", "checkpoint_minutes"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{flag(name)} must be at least 0, not {getattr(self, name)}")
        for name in ("evaluation_deals", "final_deals"):
            if not 1 <= (deals := getattr(self, name)) <= MOST_DEALS:
                raise ValueError(f"{flag(name)} must be 1..{MOST_DEALS:,}, not {deals:,}")

    def as_json(self) -> dict[str, Any]:
        """Return the settings for config.json, without those of the other algorithm."""
        settings = dataclasses.asdict(self)
        for name in ("folder", "resume", "value" if self.algorithm == "ppo" else "ppo"):
            del settings[name]
        return settings


def from_json(values: Any) -> Config:
    """Read the settings in a config.json; those that it leaves out keep their defaults.

    Raises:
        ValueError: A setting is unknown, has the wrong type, or is out of range; names it.
    """
    try:
        config = msgspec.convert(values, Config)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
    known = options(dataclasses.asdict(config))
    for option in options(values):
        if option not in known:
            raise ValueError(f"unknown setting '{option}'; known settings: {', '.join(known)}")
    config.check()
    return config


def options(values: Mapping[str, Any], group: str = "") -> dict[str, Any]:
    """List the options of a configuration in dictionaries, those of a group as GROUP.OPTION."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= options(value, f"{name}.") if isinstance(value, dict) else {group + name: value}
    return found


def changed_options(given: Config, usual: Config) -> list[str]:
    """List the options in which two configurations differ, as `options` names them."""
    defaults = options(dataclasses.asdict(usual))
    values = options(dataclasses.asdict(given))
    return [option for option, value in values.items() if value != defaults[option]]


def flag(option: str) -> str:
    """Return an option as it is written on the command line."""
    return "--" + option.rpartition(".")[2].replace("_", "-")
