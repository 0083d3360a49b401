"""Damaged texts, values that nobody expects, and what a clear refusal is, for the fuzz tests."""

import numpy as np

LETTERS = " \n\r\t/:;,=+-.<>^v0123456789NESWxslwLSR#\0é٣²\ud800"
STRANGE = (
    None,
    True,
    -1,
    15,
    2**31,
    2**63,
    2**64,
    10**30,
    10**400,
    1.5,
    float("nan"),
    float("inf"),
    1j,
    "",
    "1",
    b"1",
    [],
    [1],
    [[1], [2, 3]],
    (),
    {},
    {"position": 1},
    set(),
    object(),
    int,
    np.array(1.0),
    np.array([1, 2]),
    np.array([], int),
    np.array([None]),
    np.array(["1"]),
    np.array([1], "datetime64[s]"),
    np.float32(1),
    np.bool_(True),
    np.uint64(2**64 - 1),
)
"""Values of types and sizes that nobody expects."""


def damaged(text, rng):
    """A text with one to three characters or pieces changed, left out, doubled or moved."""
    for _ in range(rng.randint(1, 3)):
        at, to = sorted(rng.randint(0, len(text)) for _ in range(2))
        piece = text[at:to]
        text = rng.choice(
            (
                text[:at] + rng.choice(LETTERS) + text[at + 1 :],
                text[:at] + rng.choice(LETTERS) + text[at:],
                text[:at] + text[at + 1 :],
                text[:at],
                text[:to] + piece + text[to:],
                text[:at] + piece[::-1] + text[to:],
                text[:at] + str(rng.choice((0, 7, 99, 1000, 10**6, 10**20))) + text[at + 1 :],
            )
        )
    return text


def accepts(call, *arguments, **named):
    """True where a call succeeds, False where it raises a clear ValueError; all else is raised."""
    try:
        call(*arguments, **named)
    except ValueError as error:
        if isinstance(error, UnicodeError) or not str(error).strip():
            raise AssertionError(f"no clear error: {error!r}") from error
        return False
    return True
