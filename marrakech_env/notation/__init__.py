"""Positions, moves and whole games as text, exactly and both ways.

A position is five fields with one space between them, `BOARD ASSAM TURN PLAYERS RULES`, for
example the start of a 2-player game whose first rugs are of colours 0 and 3:

    ............../............../............../............../............../............../
    .............. 33S 0s 30:12+12:0,30:12+12:3 official            (one line, broken here only)

A move is `L3` (turned left, rolled 3), `L` where steering carries no die, or `33-34=1` (a rug on
these two squares, the first beside Assam, and colour 1 drawn for the mover's next rug). A game is
its start and a line for each turn. `docs/interfaces.md` has the whole grammar.

A state has exactly one text, and a text that is accepted exactly one state; only the options in
RULES may be read in another order than they are written.
"""

from marrakech_env.notation.move import format_move, legal_moves, parse_move, read_move
from marrakech_env.notation.position import (
    FIELDS,
    format_position,
    parse_position,
    parse_start,
    position_option,
)
from marrakech_env.notation.record import GameRecord, format_game, parse_game, replay

__all__ = [
    "FIELDS",
    "GameRecord",
    "format_game",
    "format_move",
    "format_position",
    "legal_moves",
    "parse_game",
    "parse_move",
    "parse_position",
    "parse_start",
    "position_option",
    "read_move",
    "replay",
]
