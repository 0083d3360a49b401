"""Every row of tests/data: positions of real games with known answers.

The course strings are read into position text, and both the kernels and the reference are asked.
What position text cannot say (ids of rugs, an eliminated player who lays) is told by the strings,
with the reference as judge of the board. The format is described in tests/data/README.md.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from reference import Game, Square, on_board, walk

from marrakech_env import notation, rules

DATA = Path(__file__).parent / "data"
MARKS = {(0, -1): "^", (1, 0): ">", (0, 1): "v", (-1, 0): "<"}


def rows(name: str) -> pytest.MarkDecorator:
    """Run a test on every row of a file: the state, the action and the expected answer."""
    with (DATA / f"{name}.csv").open(newline="") as file:
        table = [(row["state"], row["action"], row["expected"]) for row in csv.DictReader(file)]
    ids = [f"line{number}" for number in range(2, len(table) + 2)]
    return pytest.mark.parametrize(("state", "action", "expected"), table, ids=ids)


@dataclass
class Seat:
    """One player string."""

    letter: str
    money: int
    rugs: int
    in_game: bool


@dataclass
class Rug:
    """One rug string; `name` is its colour letter and id, as on the board."""

    name: str
    squares: tuple[Square, Square]

    @classmethod
    def read(cls, text: str) -> Rug:
        """Read a rug string."""
        x1, y1, x2, y2 = map(int, text[3:])
        return cls(text[:3], ((x1, y1), (x2, y2)))


@dataclass
class Course:
    """One state string: the seats, Assam (`36W`), and the rug's name on each covered square."""

    seats: list[Seat]
    assam: str
    board: dict[Square, str]

    @classmethod
    def read(cls, text: str) -> Course:
        """Read a state string."""
        players, assam, board = re.fullmatch(r"(.*)A(\d\d\w)B(.*)", text).groups()
        seats = [
            Seat(letter, int(money), int(rugs), status == "i")
            for letter, money, rugs, status in re.findall(r"P(\w)(\d{3})(\d\d)([io])", players)
        ]
        names = [board[i : i + 3] for i in range(0, len(board), 3)]
        squares = [(x, y) for x in range(7) for y in range(7)]
        return cls(seats, assam, {s: n for s, n in zip(squares, names, strict=True) if n != "n00"})

    def seat(self, letter: str) -> int:
        """The seat of a colour letter, -1 where nobody has it."""
        letters = [seat.letter for seat in self.seats]
        return letters.index(letter) if letter in letters else -1

    def first_in_game(self) -> int:
        """The first seat that is still in the game."""
        return next(number for number, seat in enumerate(self.seats) if seat.in_game)

    def position(self, player: int, phase: str) -> str:
        """The position text with this player to steer or to lay."""
        rows = ["".join(self._word((x, y)) for x in range(7)) for y in range(7)]
        # The strings do not tell in which order players went out; any order serves.
        out = [number for number, seat in enumerate(self.seats) if not seat.in_game]
        players = [
            f"{seat.money}:{seat.rugs}" if seat.in_game else f"x{out.index(number) + 1}:0"
            for number, seat in enumerate(self.seats)
        ]
        return f"{'/'.join(rows)} {self.assam} {player}{phase} {','.join(players)} comp1110"

    def _word(self, square: Square) -> str:
        """Two characters of the BOARD field."""
        if square not in self.board:
            return ".."
        name = self.board[square]
        for (dx, dy), mark in MARKS.items():
            if self.board.get((square[0] + dx, square[1] + dy)) == name:
                return f"{self.seat(name[0])}{mark}"
        return f"{self.seat(name[0])}-"

    def told_illegal(self, rug: Rug) -> bool:
        """Whether the strings alone rule a rug out."""
        off_board = not all(on_board(square) for square in rug.squares)
        return self.seat(rug.name[0]) < 0 or off_board or rug.name in self.board.values()

    def laid(self, rug: Rug) -> Course:
        """The state with one more rug on the board and one less in its owner's hands."""
        seats = [
            replace(seat, rugs=max(seat.rugs - 1, 0)) if seat.letter == rug.name[0] else seat
            for seat in self.seats
        ]
        return Course(seats, self.assam, self.board | dict.fromkeys(rug.squares, rug.name))


def to_lay(course: Course, rug: Rug) -> Game:
    """The reference with the owner of a rug to lay, even an owner who is out of the game."""
    game = Game.from_text(course.position(course.first_in_game(), "l"))
    game.player = course.seat(rug.name[0])
    return game


def action_for(game: Game, rug: Rug) -> int | None:
    """The laying action that covers exactly the squares of a rug, if there is one."""
    for action in range(3, 15):
        if set(game.placement(action)) == set(rug.squares):
            return action
    return None


def reference_allows(course: Course, rug: Rug) -> bool:
    """Whether the reference lets the rug be laid."""
    game = to_lay(course, rug)
    return action_for(game, rug) in game.legal_actions()


@rows("movement")
def test_assam_walks(state: str, action: str, expected: str) -> None:
    (x, y), facing = walk((int(state[1]), int(state[2])), state[3], int(action))
    assert f"A{x}{y}{facing}" == expected
    empty = "/".join([".." * 7] * 7)
    states = notation.parse_position(f"{empty} {state[1:]} 0s 30:15,30:15 comp1110")
    rules.step(states, *(np.array([n]) for n in notation.parse_move(states, f"S{action}")))
    assert "A" + notation.format_position(states).split()[1] == expected


@rows("payment")
def test_region_under_assam_is_due(state: str, action: str, expected: str) -> None:
    course = Course.read(state)
    x, y = int(course.assam[0]), int(course.assam[1])
    owner = course.seat(course.board.get((x, y), "-")[0])
    movers = [n for n, seat in enumerate(course.seats) if seat.in_game and n != owner]
    assert movers
    for mover in movers:
        text = course.position(mover, "s")
        states = notation.parse_position(text)
        assert rules.tolls(states)[0, 7 * y + x] == int(expected)
        assert rules.tolls(states, np.array([mover]))[0, 7 * y + x] == int(expected)
        assert Game.from_text(text).due(mover, (x, y)) == int(expected)


@rows("placement")
def test_laying_is_legal_or_not(state: str, action: str, expected: str) -> None:
    course, rug = Course.read(state), Rug.read(action)
    legal = expected == "true"
    if course.told_illegal(rug):
        assert not legal
        return
    assert reference_allows(course, rug) == legal
    owner = course.seat(rug.name[0])
    if course.seats[owner].in_game:
        states = notation.parse_position(course.position(owner, "l"))
        number = action_for(to_lay(course, rug), rug)
        assert (number is not None and bool(rules.action_mask(states)[0, number])) == legal


@rows("make")
def test_laying_makes_the_next_state(state: str, action: str, expected: str) -> None:
    course, rug = Course.read(state), Rug.read(action)
    legal = not course.told_illegal(rug) and reference_allows(course, rug)
    assert (course.laid(rug) if legal else course) == Course.read(expected)
    owner = course.seat(rug.name[0])
    if course.told_illegal(rug) or not course.seats[owner].in_game:
        return
    game = to_lay(course, rug)
    states, number = notation.parse_position(game.text()), action_for(game, rug)
    if not legal:
        assert number is None or not rules.action_mask(states)[0, number]
        return
    rules.step(states, np.array([number]), np.array([-1]))
    game.apply(number)
    assert notation.format_position(states) == game.text()
    # Board, Assam and players; whose turn comes next the strings do not tell.
    board, assam, _, players, _ = Course.read(expected).position(owner, "s").split()
    assert [board, assam, players] == [game.text().split()[field] for field in (0, 1, 3)]


@rows("game_over")
def test_game_is_over_or_not(state: str, action: str, expected: str) -> None:
    course = Course.read(state)
    text = course.position(course.first_in_game(), "s")
    assert bool(rules.is_over(notation.parse_position(text))[0]) == (expected == "true")
    assert Game.from_text(text).is_over() == (expected == "true")


@rows("winner")
def test_winner_is_found(state: str, action: str, expected: str) -> None:
    course = Course.read(state)
    text = course.position(course.first_in_game(), "s")
    shares = rules.winner_shares(notation.parse_position(text))[0].tolist()
    assert shares == [float(share) for share in Game.from_text(text).winner_shares()]
    if expected == "n":
        assert sum(shares) == 0
    elif expected == "t":
        assert max(shares) < 1
        assert sum(shares) == pytest.approx(1)
    else:
        assert shares[course.seat(expected)] == 1
