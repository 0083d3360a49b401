"""Positions as text: five fields with one space between them, `BOARD ASSAM TURN PLAYERS RULES`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn

import numpy as np

from marrakech_env import game, rules
from marrakech_env.actions import square_name
from marrakech_env.spec import (
    BOARD_SIZE,
    DEFAULT_RUGS,
    EAST,
    FACINGS,
    MAX_RUGS,
    NUM_CELLS,
    NUM_COLOURS,
    SOUTH,
    RuleSet,
)
from marrakech_env.state import (
    LAY,
    MAX_MONEY,
    OVER,
    STATE,
    STEER,
    STEER_AT_END,
    WALK,
    Record,
    State,
    States,
    one_state,
    rule_set_of,
    write_rules,
)
from marrakech_env.tables import DX, DY, on_board

FIELDS: Final = ("BOARD", "ASSAM", "TURN", "PLAYERS", "RULES")
"""The fields of a position text, in their order."""

_MARKS: Final = "^>v<"  # where the other visible half lies, by facing
_COVERED: Final = "-"
_EMPTY: Final = ".."
_PHASES: Final = {"s": STEER, "l": LAY, "w": WALK}
_PHASE_LETTERS: Final = {phase: letter for letter, phase in _PHASES.items()}
_OVER: Final = "-"
_NUMBER: Final = r"(0|[1-9][0-9]{0,3})"  # no sign, no leading zeros, four digits at most
_ONE_COLOUR: Final = re.compile(rf"{_NUMBER}:{_NUMBER}")
_TWO_COLOURS: Final = re.compile(rf"{_NUMBER}:{_NUMBER}\+{_NUMBER}:([0-3]|-)")
_ELIMINATED: Final = re.compile(r"x([1-4]):0")
_ASSAM: Final = re.compile(rf"([0-6])([0-6])([{FACINGS}])")
_TURN: Final = re.compile(r"([0-3])([slw])")


def parse_position(text: str) -> States:
    """Reads a position text.

    Whether the position can be reached in play is not asked.

    Args:
        text: Five fields, see `docs/interfaces.md`.

    Returns:
        The state, shape (1,), dtype `STATE`.

    Raises:
        ValueError: Names the field, what was found there and what is allowed.
    """
    if not isinstance(text, str):
        raise ValueError(f"a position text must be a str, not {text!r}")
    parts = text.split(" ")
    if len(parts) != len(FIELDS):
        raise ValueError(
            f"a position text has five fields with one space between them, {' '.join(FIELDS)}; "
            f"found {len(parts)} in {text!r}"
        )
    board, assam, turn, players, rules_text = parts
    entries = players.split(",")
    if len(entries) not in DEFAULT_RUGS:
        _refuse("PLAYERS", players, "2, 3 or 4 entries joined by ','")
    try:
        rule_set = RuleSet.parse(rules_text, len(entries))
    except ValueError as error:
        raise ValueError(f"RULES: found {rules_text!r}: {error}") from None

    states = np.zeros(1, STATE)
    states["next_colour"] = -1
    write_rules(states, rule_set)
    state = states[0]
    _read_board(state, board, rule_set)
    _read_assam(state, assam)
    _read_players(state, entries, rule_set)
    _read_turn(state, turn)
    return states


def parse_start(text: str, num_players: int) -> States:
    """Reads a position text from which a game of so many players shall be played.

    Returns:
        The state, shape (1,), dtype `STATE`.

    Raises:
        ValueError: As `parse_position`; or the game is over, or has another number of players.
    """
    position = parse_position(text)
    players = int(position["num_players"][0])
    if players != num_players:
        raise ValueError(f"the position has {players} players, wanted: {num_players}: {text}")
    if position["phase"][0] == OVER:
        raise ValueError(f"the game of this position is over, nobody can move: {text}")
    return position


def position_option(options: Any) -> Any:
    """What the options of an environment's `reset` hold under `position`, None for nothing.

    Raises:
        ValueError: The options are no dict.
    """
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(f"options must be a dict or None, not {options!r}")
    return (options or {}).get("position")


def format_position(state: State) -> str:
    """Writes the position text of a state, the only one that is canonical.

    Raises:
        ValueError: Not one state.
    """
    state, rule_set = one_state(state), rule_set_of(state)
    return " ".join(
        (
            _board_text(state),
            square_name(int(state["assam"])) + FACINGS[state["facing"]],
            turn_text(state),
            ",".join(_player_text(state, seat, rule_set) for seat in range(rule_set.num_players)),
            str(rule_set),
        )
    )


def turn_text(state: Record) -> str:
    """The TURN field of a state."""
    if state["phase"] == OVER:
        return _OVER
    return f"{state['player']}{_PHASE_LETTERS[int(state['phase'])]}"


def _refuse(field: str, found: str, allowed: str) -> NoReturn:
    raise ValueError(f"{field}: found {found!r}; allowed: {allowed}")


def _read_board(state: Record, text: str, rule_set: RuleSet) -> None:
    """Writes colours and links."""
    rows = text.split("/")
    if len(rows) != BOARD_SIZE or any(len(row) != 2 * BOARD_SIZE for row in rows):
        _refuse("BOARD", text, "seven rows of seven squares, two characters each, joined by '/'")
    squares = [row[i : i + 2] for row in rows for i in range(0, 2 * BOARD_SIZE, 2)]
    num_colours = NUM_COLOURS if rule_set.two_colours else rule_set.num_players
    colours = "0123"[:num_colours]
    boards, east, south = [0] * NUM_COLOURS, 0, 0
    for cell, square in enumerate(squares):
        if square == _EMPTY:
            continue
        colour, mark = square[0], square[1]
        if colour not in colours or mark not in _MARKS + _COVERED:
            _refuse(
                "BOARD",
                square,
                f"on square {square_name(cell)} '..', or a colour 0..{num_colours - 1} and a mark "
                f"of {' '.join(_MARKS + _COVERED)}",
            )
        boards[int(colour)] |= 1 << cell
        if mark == _COVERED:
            continue
        facing = _MARKS.index(mark)
        _check_partner(squares, cell, facing)
        if facing == EAST:
            east |= 1 << cell
        elif facing == SOUTH:
            south |= 1 << cell
    state["colour_boards"] = boards
    state["links_east"], state["links_south"] = east, south


def _check_partner(squares: list[str], cell: int, facing: int) -> None:
    """Refuses a mark that does not point to the other half of its own rug."""
    y, x = divmod(cell, BOARD_SIZE)
    x, y = x + DX[facing], y + DY[facing]
    if not on_board(x, y):
        _refuse("BOARD", squares[cell], f"on square {square_name(cell)} no mark off the board")
    partner = BOARD_SIZE * y + x
    wanted = squares[cell][0] + _MARKS[(facing + 2) % 4]
    if squares[partner] != wanted:
        raise ValueError(
            f"BOARD: found {squares[cell]!r} on square {square_name(cell)} without its partner: "
            f"square {square_name(partner)} must be {wanted!r}, not {squares[partner]!r}"
        )


def _read_assam(state: Record, text: str) -> None:
    match = _ASSAM.fullmatch(text)
    if match is None:
        _refuse("ASSAM", text, "x 0..6, y 0..6 and a facing N, E, S or W, such as '33S'")
    state["assam"] = BOARD_SIZE * int(match[2]) + int(match[1])
    state["facing"] = FACINGS.index(match[3])


def _read_players(state: Record, entries: list[str], rule_set: RuleSet) -> None:
    """Writes money, rugs and elimination of every seat."""
    form = "money:rugs+rugs:next" if rule_set.two_colours else "money:rugs"
    for seat, entry in enumerate(entries):
        owned = rule_set.owned_colours(seat)
        if len(owned) == 1:
            state["next_colour"][seat] = owned[0]
        if match := _ELIMINATED.fullmatch(entry):
            state["eliminated"][seat] = int(match[1])
            continue
        match = (_TWO_COLOURS if rule_set.two_colours else _ONE_COLOUR).fullmatch(entry)
        if match is None or int(match[1]) > MAX_MONEY:
            _refuse(
                "PLAYERS",
                entry,
                f"for player {seat} '{form}' with money 0..{MAX_MONEY} and no leading zeros, or "
                f"'xN:0' with N = 1, 2, ... by the order of elimination",
            )
        state["money"][seat] = int(match[1])
        for colour, rugs in zip(owned, match.groups()[1:], strict=False):
            if int(rugs) > MAX_RUGS:
                _refuse("PLAYERS", entry, f"for player {seat} at most {MAX_RUGS} rugs of a colour")
            state["rugs"][colour] = int(rugs)
        if rule_set.two_colours:
            held = [str(colour) for colour in owned if state["rugs"][colour]] or ["-"]
            if match[4] not in held:
                _refuse("PLAYERS", entry, f"for player {seat} a next colour of {', '.join(held)}")
            state["next_colour"][seat] = -1 if match[4] == "-" else int(match[4])
    orders = sorted(order for order in state["eliminated"].tolist() if order)
    if orders != list(range(1, len(orders) + 1)):
        _refuse("PLAYERS", ",".join(entries), "orders of elimination 1, 2, ..., each once")
    if len(orders) == len(entries):
        _refuse("PLAYERS", ",".join(entries), "at least one player who is not eliminated")


def _read_turn(state: Record, text: str) -> None:
    """Writes player and phase; needs everything else."""
    if text == _OVER:
        if not game.is_over(state):
            _refuse("TURN", text, "a player and a phase, because the game is not over")
        state["phase"] = OVER
        return
    num_players = int(state["num_players"])
    at_end = bool(state["flags"] & STEER_AT_END)
    match = _TURN.fullmatch(text)
    if match is None or int(match[1]) >= num_players or (match[2] == "w" and not at_end):
        letters = "s (to steer), l (to lay)" + (", w (to walk)" if at_end else "")
        _refuse("TURN", text, f"a player 0..{num_players - 1} and a phase {letters}; or '-' alone")
    player = int(match[1])
    if state["eliminated"][player]:
        _refuse("TURN", text, f"a player still in the game; {player} is eliminated")
    if match[2] == "l" and state["next_colour"][player] < 0:
        _refuse("TURN", text, f"to lay only with a rug left; player {player} has none")
    state["player"], state["phase"] = player, _PHASES[match[2]]


def _board_text(state: Record) -> str:
    east, south = int(state["links_east"]), int(state["links_south"])
    directions = ((south << BOARD_SIZE, "^"), (east, ">"), (south, "v"), (east << 1, "<"))
    colours = rules.colours(state)[0]
    squares = []
    for cell in range(NUM_CELLS):
        marks = [mark for links, mark in directions if links >> cell & 1]
        colour = int(colours[cell])
        squares.append(_EMPTY if colour < 0 else f"{colour}{marks[0] if marks else _COVERED}")
    rows = range(0, NUM_CELLS, BOARD_SIZE)
    return "/".join("".join(squares[row : row + BOARD_SIZE]) for row in rows)


def _player_text(state: Record, seat: int, rule_set: RuleSet) -> str:
    if state["eliminated"][seat]:
        return f"x{state['eliminated'][seat]}:0"
    owned = rule_set.owned_colours(seat)
    text = f"{state['money'][seat]}:" + "+".join(str(state["rugs"][colour]) for colour in owned)
    if len(owned) == 1:
        return text
    colour = int(state["next_colour"][seat])
    return f"{text}:{colour if colour >= 0 else '-'}"
