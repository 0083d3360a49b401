"""Golden playthroughs: whole games, written out decision by decision in `tests/golden`.

    python tests/make_golden.py

writes all of them anew; read the difference like code before you keep it. A file holds the game as
a record, then everything that the package says about each of its positions, so that a change of
the rules shows where it bites. Positions are position texts, broken after each row of the board.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

from marrakech_env import notation, rules
from marrakech_env.actions import describe, square_name
from marrakech_env.batch import Batch
from marrakech_env.state import States

COMMAND: Final = "python tests/make_golden.py"
FOLDER: Final = Path(__file__).parent / "golden"

# Rules and number of players, and the seed. Random players go bankrupt in one game of ten or less
# and share a win in one of 300, so the seeds were picked for what stands beside them.
GAMES: Final = {
    ("official", 2): 103,  # equal scores, decided by money
    ("official", 3): 64,  # one goes bankrupt, the others play on
    ("official", 4): 241,  # a shared win
    ("boardgamearena", 2): 15,  # ends early, by a bankruptcy
    ("boardgamearena", 3): 106,  # two go bankrupt, which ends the game
    ("boardgamearena", 4): 0,
    ("boardgamearena;steering=end", 2): 72,  # ends early, by a bankruptcy
    ("boardgamearena;steering=end", 3): 57,  # one goes bankrupt, the others share the win
    ("boardgamearena;steering=end", 4): 106,  # one goes bankrupt
    ("comp1110", 2): 15,  # one goes bankrupt, the other plays on alone
    ("comp1110", 3): 0,
    ("comp1110", 4): 69,  # two go bankrupt, the others play on
}


def path_of(rule_text: str, num_players: int) -> Path:
    """The file of a game: `boardgamearena-steering-end-3-players.txt`."""
    return FOLDER / f"{re.sub('[;=_]', '-', rule_text)}-{num_players}-players.txt"


def play(rule_text: str, num_players: int, seed: int) -> notation.GameRecord:
    """Game 0, episode 0 of a seed, played by uniformly random legal actions."""
    batch, rng = Batch(1, num_players, rule_text, seed), Random(seed)
    start, moves = notation.format_position(batch.states), []
    while not batch.done[0]:
        before = batch.states.copy()
        legal = np.flatnonzero(batch.action_mask[0])
        # Of all methods of Random, only random() is the same in every version of Python.
        action = int(legal[int(rng.random() * len(legal))])
        batch.step([action])
        after = batch.final_states if batch.done[0] else batch.states
        moves.append((action, _drawn(before, action, after)))
    comment = f"{rule_text}, {num_players} players, seed {seed}: random moves, by {COMMAND}"
    return notation.GameRecord(start, tuple(moves), (comment,))


def _drawn(before: States, action: int, after: States) -> int:
    """The outcome that leads from one state to the other; no two outcomes lead to the same."""
    for outcome in rules.chance_outcomes(before, action)[0].tolist():
        reached = before.copy()
        rules.step(reached, [action], [outcome])
        if reached[0] == after[0]:
            return outcome
    raise AssertionError(f"no outcome of {action} leads to {notation.format_position(after)}")


def playthrough(record: notation.GameRecord) -> str:
    """The text of a golden file: the record, then every position of the game."""
    game = notation.format_game(record)
    turns = [line.split(": ") for line in game.splitlines() if line[0].isdigit()]
    positions = notation.replay(record)
    moves = iter(record.moves)
    paragraphs = [[game.rstrip("\n")]]
    for turn, texts in turns:
        for text in texts.split(" "):
            states, (action, _) = next(positions), next(moves)
            paragraphs.append(
                [
                    f"turn {turn}",
                    *_position(states),
                    *_tolls(states),
                    _legal(states),
                    f"move {text}: {describe(action, states)}",
                    _chance(states, action),
                ]
            )
    (last,) = positions
    paragraphs.append(
        [
            "end",
            *_position(last),
            f"ranks {_numbers(rules.ranks(last)[0])}",
            f"winner shares {_numbers(map(_fraction, rules.winner_shares(last)[0]))}",
        ]
    )
    return "\n\n".join("\n".join(lines) for lines in paragraphs) + "\n"


def record_of(text: str) -> notation.GameRecord:
    """The record at the top of a golden file."""
    return notation.parse_game(text.partition("\n\n")[0])


def _position(states: States) -> Iterator[str]:
    yield from notation.format_position(states).replace("/", "/\n").split("\n")
    yield f"scores {_numbers(rules.scores(states)[0])}"


def _tolls(states: States) -> Iterator[str]:
    """A line for each amount that the player to move would owe somewhere."""
    tolls = rules.tolls(states)[0]
    for amount in np.unique(tolls[tolls > 0]):
        yield f"toll {amount} on {' '.join(map(square_name, np.flatnonzero(tolls == amount)))}"


def _legal(states: States) -> str:
    actions = np.flatnonzero(rules.action_mask(states)[0])
    moves = notation.legal_moves(states)
    return "legal " + " ".join(f"{a}={move}" for a, move in zip(actions, moves, strict=True))


def _chance(states: States, action: int) -> str:
    pairs = zip(*rules.chance_outcomes(states, action), strict=True)
    return "chance " + ", ".join(f"{outcome}: {_fraction(p)}" for outcome, p in pairs)


def _fraction(number: float) -> Fraction:
    """A probability or share as people write it; the package's have small denominators."""
    return Fraction(float(number)).limit_denominator(200)


def _numbers(values: Iterable[object]) -> str:
    return " ".join(map(str, values))


def main() -> None:
    """Writes every file anew and removes those of games that are no longer listed."""
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.txt"):
        path.unlink()
    for (rule_text, num_players), seed in GAMES.items():
        text = playthrough(play(rule_text, num_players, seed))
        path_of(rule_text, num_players).write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
