"""The golden playthroughs: the same seeds play the same games, and every position says the same."""

from __future__ import annotations

from difflib import unified_diff

import numpy as np
import pytest
from make_golden import COMMAND, FOLDER, GAMES, path_of, play, playthrough, record_of

from marrakech_env import notation, rules

ADVICE = f"if that is meant, `{COMMAND}` writes the files anew: read the difference first"


@pytest.fixture(scope="module", params=GAMES, ids=lambda game: path_of(*game).stem)
def golden(request: pytest.FixtureRequest) -> tuple[tuple[str, int], str]:
    """A game of the list, and its file; git may have given that the line ends of Windows."""
    path = path_of(*request.param)
    assert path.exists(), f"{path.name} is missing: `{COMMAND}` writes it"
    return request.param, path.read_bytes().decode().replace("\r\n", "\n")


def check_equal(expected: str, found: str, what: str) -> None:
    if expected == found:
        return
    difference = unified_diff(
        expected.splitlines(), found.splitlines(), "golden file", "now", lineterm="", n=12
    )
    shown = "\n".join(list(difference)[:60])
    pytest.fail(f"{what} has changed; {ADVICE}.\n{shown}", pytrace=False)


def test_the_seed_plays_the_same_game(golden: tuple[tuple[str, int], str]) -> None:
    """The chance of a Batch and the numbers of the actions are those of the file."""
    game, text = golden
    record = play(*game, GAMES[game])
    check_equal(text.partition("\n\n")[0] + "\n", notation.format_game(record), "the game")


def test_every_position_says_the_same(golden: tuple[tuple[str, int], str]) -> None:
    """Given the moves of the file, all else in it follows from the rules."""
    _, text = golden
    check_equal(text, playthrough(record_of(text)), "what is said about the game")


def test_every_file_belongs_to_a_game() -> None:
    assert {path_of(*game) for game in GAMES} == set(FOLDER.glob("*.txt")), ADVICE


def test_the_games_hold_what_their_seeds_were_picked_for() -> None:
    ends = {}
    for game in GAMES:
        *_, last = notation.replay(play(*game, GAMES[game]))
        out = int((last["eliminated"] > 0).sum())
        shares = rules.winner_shares(last)[0]
        ends[game] = out, int(np.count_nonzero(shares))
    assert {out for out, _ in ends.values()} == {0, 1, 2}
    assert {winners for _, winners in ends.values()} == {1, 2}
    assert all(any(ends[g][0] for g in GAMES if g[1] == players) for players in (2, 3, 4))
