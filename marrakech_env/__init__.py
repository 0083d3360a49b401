"""The board game Marrakech as a fast, exact reinforcement learning environment.

This import is light: what is heavier is imported when it is first asked for. It makes the ids
known under which Gymnasium and PettingZoo find the environments.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import gymnasium
import pettingzoo

if TYPE_CHECKING:
    from marrakech_env import actions as actions
    from marrakech_env import marrakech_v0 as marrakech_v0
    from marrakech_env import notation as notation
    from marrakech_env import rules as rules
    from marrakech_env.aec import env, raw_env
    from marrakech_env.agent import load_agent
    from marrakech_env.batch import Batch
    from marrakech_env.game_object import Event, Game
    from marrakech_env.spec import RuleSet
    from marrakech_env.vector import MarrakechEnv, MarrakechVectorEnv

__all__ = [
    "Batch",
    "Event",
    "Game",
    "MarrakechEnv",
    "MarrakechVectorEnv",
    "RuleSet",
    "__version__",
    "actions",
    "env",
    "load_agent",
    "marrakech_v0",
    "notation",
    "raw_env",
    "rules",
]

__version__ = "0.1.0"

gymnasium.register(
    "Marrakech-v0",
    entry_point="marrakech_env.vector:MarrakechEnv",
    vector_entry_point="marrakech_env.vector:MarrakechVectorEnv",
)
if hasattr(pettingzoo, "register"):  # from 1.27 on
    pettingzoo.register("aec", "Marrakech-v0", entry_point="marrakech_env.aec:env")


_MODULES = ("actions", "marrakech_v0", "notation", "rules")
_HOMES = {
    "Batch": "batch",
    "Event": "game_object",
    "Game": "game_object",
    "MarrakechEnv": "vector",
    "MarrakechVectorEnv": "vector",
    "RuleSet": "spec",
    "env": "aec",
    "load_agent": "agent",
    "raw_env": "aec",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use."""
    if name in _MODULES:
        return import_module(f"marrakech_env.{name}")
    if name in _HOMES:
        return getattr(import_module(f"marrakech_env.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """All names, those not imported yet too, for completion in a shell."""
    return sorted({*globals(), *__all__})
