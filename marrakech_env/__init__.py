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
    from marrakech_env import marrakech_v0 as marrakech_v0
    from marrakech_env.aec import env, raw_env
    from marrakech_env.agent import load_agent

__all__ = ["__version__", "env", "load_agent", "marrakech_v0", "raw_env"]

__version__ = "0.1.0"

gymnasium.register(
    "Marrakech-v0",
    entry_point="marrakech_env.vector:MarrakechEnv",
    vector_entry_point="marrakech_env.vector:MarrakechVectorEnv",
)
if hasattr(pettingzoo, "register"):  # from 1.27 on
    pettingzoo.register("aec", "Marrakech-v0", entry_point="marrakech_env.aec:env")


def __getattr__(name: str) -> Any:
    """Imports the PettingZoo border and the agents at their first use."""
    if name in ("env", "raw_env"):
        return getattr(import_module("marrakech_env.aec"), name)
    if name == "load_agent":
        return import_module("marrakech_env.agent").load_agent
    if name == "marrakech_v0":
        return import_module("marrakech_env.marrakech_v0")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """All names, those not imported yet too, for completion in a shell."""
    return sorted({*globals(), *__all__})
