"""The PettingZoo module of this environment: `marrakech_v0.env()` and `marrakech_v0.raw_env()`."""

from marrakech_env.aec import env, raw_env

__all__ = ["env", "raw_env"]
