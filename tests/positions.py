"""Positions from random games for the tests of the observations, with the reference beside them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from reference import Game

from marrakech_env import notation
from marrakech_env.batch import Batch
from marrakech_env.spec import RuleSet
from marrakech_env.state import States

RULES = (
    "official",
    "official;money=6",
    "official;colours=single;steering=end;money=9",
    "official;colours=alternate;steering=end;play_on=1;money=6",
    "official;tie_break=squares;rugs=6;facing=random",
    "boardgamearena;money=12",
    "comp1110;money=8",
    "comp1110;money=1000;facing=E",
)
"""Rule sets that together reach every phase, elimination, lone survivors and great riches."""


def random_states(rules: str, num_players: int, games: int, seed: int) -> States:
    """States (N,) from random games at all times of play, finished ones among them."""
    rng = np.random.default_rng(seed)
    rule_set = RuleSet.parse(rules, num_players)
    batch = Batch(games, num_players, rule_set, seed=seed)
    found = []
    for _ in range(4 * rule_set.rugs * num_players):
        batch.step((batch.action_mask * rng.random(batch.action_mask.shape)).argmax(1))
        picked = rng.random(games) < 0.1
        found += [batch.states[picked].copy(), batch.final_states[batch.done].copy()]
    return np.concatenate(found)


def sample(num_players: int, each: int, seed: int) -> Iterator[tuple[States, Game]]:
    """Some states (1,) of every rule set of `RULES`, each with the same game in the reference."""
    rng = np.random.default_rng(seed)
    for rules in RULES:
        states = random_states(rules, num_players, 8, seed)
        for i in rng.choice(len(states), each, replace=False):
            yield states[i : i + 1], Game.from_text(notation.format_position(states[i]))


def mirrored(text: str) -> str:
    """A position text reflected in the diagonal through (0, 0): x and y change places."""
    board, assam, turn, players, rules = text.split(" ")
    rows = [[row[2 * x : 2 * x + 2] for x in range(7)] for row in board.split("/")]
    marks = str.maketrans("^>v<", "<v>^")
    flipped = "/".join("".join(rows[y][x].translate(marks) for y in range(7)) for x in range(7))
    facing = dict(zip("NESW", "WSEN"))[assam[2]]
    return " ".join([flipped, assam[1] + assam[0] + facing, turn, players, rules])


def half_turned(text: str) -> str:
    """A position text turned by half a turn."""
    board, assam, turn, players, rules = text.split(" ")
    rows = [[row[2 * x : 2 * x + 2] for x in range(7)] for row in board.split("/")]
    marks = str.maketrans("^>v<", "v<^>")
    flipped = "/".join("".join(s.translate(marks) for s in row[::-1]) for row in rows[::-1])
    facing = dict(zip("NESW", "SWNE"))[assam[2]]
    return " ".join(
        [flipped, f"{6 - int(assam[0])}{6 - int(assam[1])}{facing}", turn, players, rules]
    )


def seats_rotated(text: str) -> str:
    """A position text where every player, with his colours, has moved up one seat."""
    board, assam, turn, players, rules = text.split(" ")
    seats = players.split(",")
    two_colours = "+" in players or (
        len(seats) == 2 and "colours=single" not in text and "comp1110" not in rules
    )
    count = 4 if two_colours else len(seats)
    step = 2 if two_colours else 1
    digits = str.maketrans({str(c): str((c + step) % count) for c in range(count)})
    moved = []
    for words in (seats[-1], *seats[:-1]):
        parts = words.split(":")
        if len(parts) == 3:
            parts[2] = parts[2].translate(digits)
        moved.append(":".join(parts))
    if turn != "-":
        turn = f"{(int(turn[0]) + 1) % len(seats)}{turn[1]}"
    return " ".join([board.translate(digits), assam, turn, ",".join(moved), rules])
