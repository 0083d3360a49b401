"""One environment, one thread, arrays of its own: what the environments share to keep to that.

An environment notes that a call is inside, and whether the last one ended. CPython lets other
threads and signals in at calls only, so a note needs no lock where no call lies between looking at
it and writing it, and where a `finally` begins with writing it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded


def in_use() -> RuntimeError:
    """Return the error of a call into an environment while another call is inside it."""
    return RuntimeError(
        "another call is inside this environment; one environment belongs to one thread at a time, "
        "and no agent may use the environment that it plays in"
    )


def interrupted() -> ResetNeeded:
    """Return the error of a call after one that did not reach its end."""
    return ResetNeeded("the last call was interrupted half way: call reset() to start anew")


def own_arrays(value: Any) -> Any:
    """Copy the arrays, dicts and lists of an object's state.

    Unpickled arrays may be read-only, or the memory of another copy.
    """
    if isinstance(value, np.ndarray):
        return np.array(value)
    if type(value) is dict:
        return {key: own_arrays(entry) for key, entry in value.items()}
    return value.copy() if type(value) is list else value
