"""Whole games as text that a person can read and a program can check.

    # comments may stand here
    start ............../..(and so on)..../.............. 33S 0s 30:1+1:0,30:1+1:3 official;rugs=2
    1 player 0: L2 52-51=1
    2 player 1: S4 34-33=2
    3 player 0: R1 42-41
    4 player 1: L1 32-42
    result 33,34 won by 1

A line is a turn: its number, who moves, and his moves. The result has the final scores in seat
order and the winners, `shared by 0,1` where there are more, or is `result open` where the game was
not played out. Reading plays the game: a text is accepted only if every move was
legal, every outcome possible and the result right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from marrakech_env import rules
from marrakech_env.notation.move import format_move, parse_move
from marrakech_env.notation.position import format_position, parse_position
from marrakech_env.state import OVER, STEER, STEER_AT_END, WALK, Record, States

_TURN_LINE: Final = re.compile(r"([1-9][0-9]*) player ([0-3]): (.+)")


@dataclass(frozen=True, slots=True)
class GameRecord:
    """One game: where it started, and what everybody and the dice did.

    Attributes:
        start: Position text.
        moves: Action and outcome of every decision, as `rules.step` takes them.
        comments: Lines that stand above the game, without the `# `.
    """

    start: str
    moves: tuple[tuple[int, int], ...] = ()
    comments: tuple[str, ...] = ()


def replay(record: GameRecord) -> Iterator[States]:
    """Plays a recorded game.

    Yields:
        The state before every move, then the last one; each is a new array of shape (1,).

    Raises:
        ValueError: The start is no position, or a move is illegal or its outcome impossible.
    """
    states = parse_position(record.start)
    yield states
    for action, outcome in record.moves:
        format_move(states, action, outcome)  # refuses what cannot happen
        states = _after(states, action, outcome)
        yield states


def format_game(record: GameRecord) -> str:
    """Writes a game as text, one line a turn, with a line break at the end.

    Raises:
        ValueError: The game cannot be played (see `replay`), or a comment has a line break.
    """
    for comment in record.comments:
        if "\n" in comment or "\r" in comment:
            raise ValueError(f"comment {comment!r} must be a single line")
    lines = [f"# {comment}" for comment in record.comments]
    states = parse_position(record.start)
    lines.append(f"start {format_position(states)}")
    turn = 0
    for action, outcome in record.moves:
        if turn == 0 or _starts_turn(states[0]):
            turn += 1
            lines.append(f"{turn} player {states['player'][0]}:")
        lines[-1] += " " + format_move(states, action, outcome)
        states = _after(states, action, outcome)
    lines.append(_result(states))
    return "\n".join(lines) + "\n"


def parse_game(text: str) -> GameRecord:
    """Reads the text of a game and checks it by playing it.

    Returns:
        The game; `start` is written canonically.

    Raises:
        ValueError: Names the line, what was found there and what is allowed.
    """
    if not isinstance(text, str):
        raise ValueError(f"a game text must be a str, not {type(text).__name__}")
    lines = text.replace("\r\n", "\n").removesuffix("\n").split("\n")
    reader = _Reader(lines)
    try:
        return reader.read()
    except ValueError as error:
        raise ValueError(f"line {reader.number}: {error}") from None


class _Reader:
    """Reads line after line; `number` is the line, from 1, that is being read."""

    def __init__(self, lines: list[str]) -> None:
        self.number = 1
        self._lines = lines

    def read(self) -> GameRecord:
        comments = []
        while self._line().startswith("# "):
            if "\r" in self._line():
                raise ValueError(f"found {self._line()!r}; allowed: a comment on a single line")
            comments.append(self._line()[2:])
            self.number += 1
        word, _, position = self._line().partition(" ")
        if word != "start":
            raise ValueError(f"found {self._line()!r}; allowed: 'start POSITION' or '# comment'")
        states = parse_position(position)
        start = format_position(states)
        moves: list[tuple[int, int]] = []
        turn = 0
        self.number += 1
        while not self._line().startswith("result"):
            turn += 1
            states = self._read_turn(states, turn, moves)
            self.number += 1
        if self._line() != _result(states):
            raise ValueError(f"found {self._line()!r}; the game played says {_result(states)!r}")
        if self.number < len(self._lines):
            self.number += 1
            raise ValueError(f"found {self._line()!r} behind the result; allowed: nothing")
        return GameRecord(start, tuple(moves), tuple(comments))

    def _line(self) -> str:
        if self.number > len(self._lines):
            raise ValueError("the text ends here; expected more of the game, with a result line")
        return self._lines[self.number - 1]

    def _read_turn(self, states: States, turn: int, moves: list[tuple[int, int]]) -> States:
        """Plays the moves of a line and appends them to `moves`; returns the state after it."""
        line, player = self._line(), states["player"][0]
        if states["phase"][0] == OVER:
            raise ValueError(f"found {line!r}; the game is over: {_result(states)!r}")
        if turn > 1 and not _starts_turn(states[0]):
            raise ValueError(f"found {line!r}, but the turn on the line above is not finished")
        match = _TURN_LINE.fullmatch(line)
        if match is None or int(match[1]) != turn or int(match[2]) != player:
            raise ValueError(
                f"found {line!r}; allowed: '{turn} player {player}: MOVES' or 'result ...'"
            )
        for place, move in enumerate(match[3].split(" ")):
            if place and states["phase"][0] != OVER and _starts_turn(states[0]):
                raise ValueError(f"move {move!r} belongs to the next turn, on the next line")
            action, outcome = parse_move(states, move)
            moves.append((action, outcome))
            states = _after(states, action, outcome)
        return states


def _after(states: States, action: int, outcome: int) -> States:
    states = states.copy()
    rules.step(states, [action], [outcome], check=False)
    return states


def _starts_turn(state: Record) -> bool:
    """Whether the next decision is the first of a turn: the one that makes Assam walk."""
    phase = int(state["phase"])
    return phase == WALK or (phase == STEER and not state["flags"] & STEER_AT_END)


def _result(states: States) -> str:
    """The result line of a game as it stands."""
    if states["phase"][0] != OVER:
        return "result open"
    scores = ",".join(map(str, rules.scores(states)[0]))
    winners = np.flatnonzero(rules.winner_shares(states)[0])
    how = "won" if len(winners) == 1 else "shared"
    return f"result {scores} {how} by {','.join(map(str, winners))}"
