"""Observations: what an agent sees, in three forms, always from the observer's perspective.

* `planes`: uint8 (C, 7, 7), the whole board as Assam sees it (turned so that he looks up), and the
  single facts as constant planes.
* `flat`: float32 (N,), the same facts as numbers; money is not clipped.
* `features`: float32 (N,), facts and what follows from each legal action.

`schema` says how an observation is described, `planes` and `features` what each form holds.

Legend: `B` games, `P` players, `C` planes, `N` numbers. C and N depend on P alone.

Perspective. *Seats* are counted from the observer: 0 is the observer, then the others in seat
order. *Colours* follow their owners in that order. With 2 players each seat has two slots: the
colour of its next rug, then its other colour (lower colour first when it has no rug left; with
single colours the second slot stays 0). So renaming a player's two colours changes nothing.

Symmetry. The track around the board is the same after a half turn and after a reflection in either
diagonal. A half turn of the position changes no observation. A reflection turns the picture into
its mirror image (left and right change places, also in the actions) and flips `facing_east_west`,
which tells where the two corner loops are: at the upper right and lower left where it is 0, at the
upper left and lower right where it is 1.
"""

from marrakech_env.observation.features import (
    FEATURES,
    LOW_MONEY,
    LOW_TURNS,
    MAX_LATE_MARGIN,
    WINDOW,
)
from marrakech_env.observation.forms import FORMS, Form, encode, find_form
from marrakech_env.observation.planes import MAX_PLANE_MONEY, PLANES
from marrakech_env.observation.schema import (
    MAX_MONEY_OF_ALL,
    MIN_PLAYERS,
    Entry,
    Schema,
    factor_table,
    markdown_table,
    offset_table,
)

__all__ = [
    "FEATURES",
    "FORMS",
    "LOW_MONEY",
    "LOW_TURNS",
    "MAX_LATE_MARGIN",
    "MAX_MONEY_OF_ALL",
    "MAX_PLANE_MONEY",
    "MIN_PLAYERS",
    "PLANES",
    "WINDOW",
    "Entry",
    "Form",
    "Schema",
    "encode",
    "factor_table",
    "find_form",
    "markdown_table",
    "offset_table",
]
