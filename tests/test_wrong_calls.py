"""Wrong arguments of every public function of the core: an error, no crash, no hang."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from marrakech_env import actions, notation, rules, solver, spec, state
from marrakech_env.agent import load_agent
from marrakech_env.batch import Batch
from marrakech_env.observation import encode, find_form
from marrakech_env.state import STATE


def run_wrong_calls(count: int, seed: int, seconds: float) -> None:
    """Runs `wrong_calls.py` as a process of its own, which a crash would end."""
    script = Path(__file__).with_name("wrong_calls.py")
    done = subprocess.run(
        [sys.executable, script, str(count), str(seed)],
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-8000:]
    assert "'ValueError'" in done.stdout


def test_thousands_of_wrong_calls_end_neither_the_process_nor_the_games() -> None:
    run_wrong_calls(3000, seed=0, seconds=600)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 6))
def test_fifty_thousand_wrong_calls_end_neither_the_process_nor_the_games(seed: int) -> None:
    run_wrong_calls(10_000, seed, seconds=1800)


READERS = {
    **{
        name: getattr(rules, name)
        for name in (
            *("action_mask", "colours", "tolls", "scores", "is_over", "winner_shares", "ranks"),
        )
    },
    "step": lambda states: rules.step(states, [1] * len(states), [1] * len(states)),
    "chance_outcomes": lambda states: rules.chance_outcomes(states[:1], 1),
    **{form: lambda states, f=form: encode(states, f) for form in ("planes", "flat", "features")},
    "format_position": lambda states: notation.format_position(states[:1]),
    "legal_moves": lambda states: notation.legal_moves(states[:1]),
    "parse_move": lambda states: notation.parse_move(states[:1], "S1"),
    "describe": lambda states: actions.describe(1, states[:1]),
    "squares_of": lambda states: actions.squares_of(4, states[:1]),
    "rule_set_of": lambda states: state.rule_set_of(states[:1]),
    "owned_colours": lambda states: state.owned_colours(states[:1], 0),
    "solve": lambda states: solver.solve(states[:1]),
    "turns_left": lambda states: solver.turns_left(states[:1]),
    "set_states": lambda states: Batch(len(states)).set_states(states),
    **{
        f"{name}.act": lambda states, n=name: load_agent(n).act(states, np.random.default_rng(0))
        for name in ("random", "greedy", "expectimax")
    },
}


@pytest.mark.parametrize("reader", READERS)
def test_states_without_players_and_without_sense_are_refused_by_all_that_reads_states(reader):
    read = READERS[reader]
    with pytest.raises(ValueError, match=r"game 0 breaks the invariant rules_are_known: .*ers=0"):
        read(np.zeros(3, STATE))
    for field, value in (
        *(("assam", 200), ("facing", 9), ("player", 7), ("phase", 9)),
        *(("next_colour", -100), ("rugs", 255), ("colour_boards", 2**64 - 1)),
    ):
        states = Batch(3).states.copy()
        states[field][0] = value
        with pytest.raises(ValueError, match=f"game 0 breaks the invariant .*{field}="):
            read(states)


@pytest.mark.parametrize(
    "games",
    [
        *([10_000_000], [-1], [3], [0, 0], [2**63 - 1], [0.0], [True], ["0"], [None], []),
        *(0, None, "0", [[0]], np.array([2**64 - 1], np.uint64), np.array([1, 1], np.int8)),
    ],
)
def test_wrong_game_numbers_are_refused_before_anything_changes(games):
    batch = Batch(3, seed=5)
    batch.step([1, 1, 1])
    before = batch.states.tobytes(), batch.done.tobytes(), batch.outcomes.tobytes()
    count = np.size(games)
    for call in (
        batch.next_rolls,
        lambda games: batch.step_games(games, batch.action_mask.argmax(1)[:count]),
        lambda games: batch.check_actions(batch.action_mask.argmax(1)[:count], games),
    ):
        with pytest.raises(ValueError, match="games must be"):
            call(games)
    assert (batch.states.tobytes(), batch.done.tobytes(), batch.outcomes.tobytes()) == before


def test_game_numbers_of_any_integer_type_and_order_are_taken():
    batch, twin = Batch(5, seed=2), Batch(5, seed=2)
    rolls = batch.next_rolls(np.arange(5))
    for games in ([4, 0, 2], np.array([4, 0, 2], np.uint8), np.array([4, 9, 0, 9, 2])[::2]):
        assert batch.next_rolls(games).tolist() == rolls[[4, 0, 2]].tolist()
    batch.step_games([4, 0, 2], [1, 1, 1])
    batch.step_games(np.array([1, 3], np.uint16), [1, 1])
    batch.step_games(np.array([], np.int64), np.array([], np.int64))
    twin.step([1] * 5)
    assert (batch.states == twin.states).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: actions.laying_action(True, 0), "side must be a whole number 0..3, not True"),
        (lambda: actions.laying_action(1.0, 0), "side must be a whole number 0..3, not 1.0"),
        (lambda: actions.square_name(49), "cell must be a whole number 0..48, not 49"),
        (lambda: actions.square_name(3.7), "cell must be a whole number 0..48, not 3.7"),
        (lambda: state.owned_colours(Batch(1).states, 7), "player must be a whole number 0..1"),
        (lambda: find_form("planes").shape(1), "num_players must be 2, 3 or 4, not 1"),
        (lambda: find_form("flat").space(5), "num_players must be 2, 3 or 4, not 5"),
        (lambda: spec.RuleSet.parse(5), "a rules text must be a str, not 5"),
        (lambda: rules.reset(np.zeros(1, STATE), "official"), "rule_set must be a RuleSet"),
        (lambda: rules.start_outcomes("official", None), "rng must be a NumPy Generator"),
        (lambda: rules.chance_outcomes(Batch(1).states, True), "action True is not legal"),
        (lambda: notation.format_game(None), "a game must be a GameRecord, not None"),
        (lambda: list(notation.replay("x")), "a game must be a GameRecord, not 'x'"),
        (lambda: notation.format_move(Batch(1).states, 1, True), "outcome True is not a whole"),
        (lambda: rules.tolls(Batch(1).states, 2), r"players must be seats 0\.\.1, not 2"),
        (lambda: encode(Batch(1).states, "flat", -1), r"players must be seats 0\.\.1, not -1"),
    ],
)
def test_other_wrong_numbers_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
