"""The solver against plain enumeration in the independent reference, and its own laws."""

from __future__ import annotations

import copy
from fractions import Fraction

import numpy as np
import pytest
from reference import Game

from marrakech_env import notation, rules, solver
from marrakech_env.batch import Batch
from marrakech_env.state import OVER, States

Values = list[tuple[Fraction, Fraction]]
"""Expected share and margin, by seat."""

RULES = (
    "official",
    "boardgamearena",
    "comp1110",
    "official;steering=end",
    "official;play_on=1;money=8",
    "official;colours=coin;tie_break=squares",
    "official;colours=alternate;money=6",
)


def late_positions(rules_text: str, players: int, turns: int, count: int, seed: int) -> list[str]:
    """Positions of random games in which so many turns are left."""
    batch = Batch(16, players, rules_text, seed=seed)
    rng = np.random.default_rng(seed)
    found: list[str] = []
    while len(found) < count:
        batch.step((batch.action_mask * rng.random((16, 15))).argmax(1))
        late = np.flatnonzero(batch.states["rugs"].sum(1) == turns)
        found += [notation.format_position(batch.states[i]) for i in late]
    picked = rng.choice(len(found), count, replace=False)
    return [found[i] for i in picked]


def brute_force(game: Game) -> tuple[Values, int]:
    """The value of a position by seat and the best action, -1 where the game is over."""
    if game.is_over():
        scores = game.scores()
        margins = [s - max(scores[:i] + scores[i + 1 :]) for i, s in enumerate(scores)]
        return [
            (Fraction(share), Fraction(margin))
            for share, margin in zip(game.winner_shares(), margins, strict=True)
        ], -1
    player, best, best_values = game.player, -1, []
    for action in game.legal_actions():
        values = action_values(game, action)
        if best < 0 or values[player] > best_values[player]:
            best, best_values = action, values
    return best_values, best


def action_values(game: Game, action: int) -> Values:
    """The expected value of an action, by seat."""
    total = [(Fraction(0), Fraction(0))] * len(game.scores())
    for outcome, chance in game.chance_outcomes(action):
        after = copy.deepcopy(game)
        after.apply(action, outcome)
        values, _ = brute_force(after)
        total = [
            (share + chance * s, margin + chance * m)
            for (share, margin), (s, m) in zip(total, values, strict=True)
        ]
    return total


def check_against_brute_force(text: str) -> None:
    game = Game.from_text(text)
    solution = solver.solve(notation.parse_position(text))
    assert solution.actions.tolist() == game.legal_actions()
    for row, action in enumerate(solution.actions.tolist()):
        values = np.array([[float(x) for x in pair] for pair in action_values(game, action)])
        np.testing.assert_allclose(solution.shares[row], values[:, 0], atol=1e-12)
        np.testing.assert_allclose(solution.margins[row], values[:, 1], atol=1e-10)
    _, best = brute_force(game)
    assert solution.best == best


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("rules_text", RULES)
def test_the_last_turn_is_solved_as_by_plain_enumeration(rules_text: str, players: int) -> None:
    for text in late_positions(rules_text, players, turns=1, count=3, seed=players):
        check_against_brute_force(text)


def test_two_turns_are_solved_as_by_plain_enumeration() -> None:
    laying = [
        text
        for text in late_positions("official", 2, turns=2, count=40, seed=1)
        if text.split(" ")[2].endswith("l")
    ]
    check_against_brute_force(laying[0])


@pytest.mark.long
@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("rules_text", RULES)
def test_two_hundred_positions_are_solved_as_by_plain_enumeration(
    rules_text: str, players: int
) -> None:
    for turns, count in ((1, 8), (2, 2)):
        for text in late_positions(rules_text, players, turns, count, seed=10 + players):
            check_against_brute_force(text)


def states_of(texts: list[str]) -> States:
    return np.concatenate([notation.parse_position(text) for text in texts])


@pytest.mark.parametrize("players", [2, 3, 4])
def test_win_shares_of_every_action_add_up_to_one(players: int) -> None:
    for state in states_of(late_positions("official", players, turns=2, count=6, seed=3)):
        np.testing.assert_allclose(solver.solve(state).shares.sum(1), 1)


def test_a_half_turn_of_the_board_changes_no_value() -> None:
    """The values of the three steerings, of a position and of the same one turned half round."""
    for text in late_positions("official", 2, turns=2, count=6, seed=4):
        board, assam, turn, rest = text.split(" ", 3)
        if turn.endswith("l"):
            continue
        cells = [row[k : k + 2] for row in board.split("/") for k in range(0, 14, 2)][::-1]
        cells = [
            "".join(dict(zip("^>v<", "v<^>", strict=True)).get(c, c) for c in p) for p in cells
        ]
        rows = ["".join(cells[k : k + 7]) for k in range(0, 49, 7)]
        x, y, facing = assam
        half = f"{6 - int(x)}{6 - int(y)}{facing.translate(str.maketrans('NESW', 'SWNE'))}"
        other = solver.solve(notation.parse_position(f"{'/'.join(rows)} {half} {turn} {rest}"))
        np.testing.assert_allclose(
            other.shares, solver.solve(notation.parse_position(text)).shares, atol=1e-12
        )


def test_the_state_is_left_alone() -> None:
    state = states_of(late_positions("official", 2, turns=1, count=1, seed=5))
    before = state.copy()
    solver.solve(state)
    assert state.tobytes() == before.tobytes()


def test_too_many_turns_are_refused() -> None:
    with pytest.raises(ValueError, match=r"48 turns are left, more than max_turns=3"):
        solver.solve(Batch(1).states)
    with pytest.raises(ValueError, match="more than max_turns=1"):
        solver.solve(states_of(late_positions("official", 2, turns=2, count=1, seed=6)), 1)


def test_a_finished_game_is_refused() -> None:
    state = states_of(late_positions("official", 2, turns=1, count=1, seed=7))
    while state["phase"][0] != OVER:
        action = solver.solve(state).best
        rules.step(state, np.array([action]), rules.chance_outcomes(state, action)[0][:1])
    with pytest.raises(ValueError, match="over"):
        solver.solve(state)


@pytest.mark.parametrize(
    "max_turns", [float("nan"), float("inf"), -1, 2.0, True, None, "3", 1j, [3], np.array([3])]
)
def test_a_limit_that_is_no_whole_number_is_refused_at_once(max_turns: object) -> None:
    with pytest.raises(ValueError, match="max_turns must be a whole number of at least 0, not"):
        solver.solve(Batch(1).states, max_turns)  # type: ignore[arg-type]


def test_states_that_are_not_one_unfinished_game_are_refused() -> None:
    good = states_of(late_positions("official", 2, turns=1, count=2, seed=8))
    for wrong, message in (
        (good, "one state wanted"),
        (good[:0], "one state wanted"),
        (np.zeros(1, good.dtype), "num_players=0"),
        (np.zeros(1), "dtype STATE"),
        (good.reshape(1, 2), "shape"),
    ):
        with pytest.raises(ValueError, match=message):
            solver.solve(wrong)


EMPTY = "/".join(["." * 14] * 7)


@pytest.mark.parametrize(
    ("turn_and_players", "turns"),
    [
        ("0s 30:1,30:1 comp1110", 2),
        ("0l 30:1,30:1 comp1110", 2),
        ("0s 30:0,30:1 comp1110", 2),  # player 0 walks once more
        ("0l 30:0,30:1 comp1110", 2),
        ("0s 30:0,30:0 comp1110", 1),
        ("0w 30:0,30:1 comp1110;steering=end", 2),
        ("0s 30:0,30:1 comp1110;steering=end", 1),  # steering ends a turn
        ("- 30:0,30:0 comp1110", 0),
    ],
)
def test_the_turn_of_a_mover_without_a_rug_counts(turn_and_players: str, turns: int) -> None:
    text = f"{EMPTY} 33S {turn_and_players}"
    assert solver.turns_left(notation.parse_position(text)) == turns
    if turns:
        assert solver.solve(notation.parse_position(text), turns).best >= 0
        with pytest.raises(ValueError, match=f"{turns} turns are left"):
            solver.solve(notation.parse_position(text), turns - 1)


def test_the_walk_of_a_mover_without_a_rug_is_solved_as_by_plain_enumeration() -> None:
    check_against_brute_force(f"{EMPTY} 33S 0s 30:0,30:1 comp1110")
