"""Random wrong calls of the core's public functions: `python wrong_calls.py COUNT SEED`.

Every call gets arguments of which at least one is wrong or strange. It may refuse them with a
`ValueError` or `TypeError`, or answer. `test_wrong_calls.py` runs this file as a process of its
own, because what it guards against ends the process or never returns.
"""

from __future__ import annotations

import faulthandler
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from marrakech_env import actions, chance, notation, rules, solver, spec, state
from marrakech_env.agent import load_agent
from marrakech_env.batch import Batch
from marrakech_env.observation import encode, find_form
from marrakech_env.state import STATE, States

LONGEST = 60.0
"""Seconds of one call, compiling included, after which the process shows its stack and ends."""
GAMES = 3

Draw = Callable[["Strange"], Any]


class Strange:
    """Draws arguments, right ones and wrong ones."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.batches = {
            players: Batch(GAMES, players, text, seed=seed, observation="flat")
            for players, text in ((2, "boardgamearena;money=9"), (3, "official;steering=end"))
        }

    def one_of(self, *values: Any) -> Any:
        return values[self.rng.integers(len(values))]

    def anything(self) -> Any:
        """A value that is hardly ever what is asked for."""
        return self.one_of(
            *(None, True, -1, 15, 10_000_000, 2**63, -(2**70), 1.0, float("nan"), float("inf"), 2j),
            *(
                "",
                "2",
                "0s",
                "L3",
                "é\0",
                b"1",
                (),
                [],
                {},
                object(),
                [1, [2]],
                [[1, 1, 1]],
                slice(3),
            ),
            *(np.int8(-1), np.uint64(2**64 - 1), np.float32(1), np.datetime64("2026-01-01")),
            *(np.array(5), np.array([]), np.array(["1", "2", "3"]), np.zeros((3, 3), np.int64)),
            *(np.array([1, 1, 1.5]), np.array([True] * GAMES), np.array([None] * GAMES)),
            *(np.broadcast_to(np.int64(1), 3), np.arange(6)[::2], np.array([2**63] * 3, np.uint64)),
            *(np.zeros(3, [("a", int)]), np.ma.masked_array([1, 2, 3], [0, 1, 0]), rules, Batch),
        )

    def whole(self) -> Any:
        """A whole number, mostly out of range."""
        return self.one_of(0, 1, 2, 3, 4, 14, 15, 48, 49, -1, 200, -(2**31), 2**31, 2**62, 2**64)

    def wholes(self) -> Any:
        """Whole numbers for the games, mostly out of range or doubled."""
        numbers = self.rng.integers(*self.one_of((0, 3), (-2, 17), (-(2**62), 2**62)), size=GAMES)
        kind = self.one_of(np.int64, np.int64, np.int8, np.uint8, np.uint64, np.float64, np.bool_)
        return self.one_of(numbers, numbers.astype(kind), numbers.tolist(), numbers[:1])

    def states(self) -> States:
        """Good states, or ones with some bytes or one field overwritten."""
        batch = self.batches[self.one_of(2, 3)]
        states = batch.states.copy()
        kind = self.rng.integers(8)
        if kind == 0:
            states = np.zeros(GAMES, STATE)
        elif kind == 1:
            states = np.frombuffer(self.rng.bytes(GAMES * STATE.itemsize), STATE)
        elif kind == 2:
            states["num_players"][self.rng.integers(GAMES)] = self.rng.integers(256)
        elif kind < 6:
            field = states[self.one_of(*STATE.names)]
            values = np.atleast_2d(field[self.rng.integers(GAMES) :][:1])[0]
            values[self.rng.integers(len(values))] = np.frombuffer(self.rng.bytes(8), values.dtype)[
                0
            ]
        return self.one_of(states, states, states[::-1], states[:1], states[0], states[:0])


def rule_set(strange: Strange) -> Any:
    return strange.one_of(
        spec.RuleSet.preset("official"), spec.RuleSet.preset("comp1110", 3), "official", "a;b", ";"
    )


def text(strange: Strange) -> Any:
    """A position, move or game text, often with a character changed."""
    batch = strange.batches[2]
    whole = strange.one_of(notation.format_position(batch.states[0]), "L3", "33-34=1", "start x\n")
    place = strange.rng.integers(len(whole))
    return strange.one_of(whole, whole[:place] + strange.one_of(*"09^s:- ") + whole[place + 1 :])


def record(strange: Strange) -> Any:
    move = strange.one_of((1, 2), (15, 1), (1, -1), ("1", 1), (1.0, 2))
    return notation.GameRecord(text(strange), (move,), strange.one_of((), ("a\nb",)))


anything, states, whole, wholes = (Strange.anything, Strange.states, Strange.whole, Strange.wholes)


FUNCTIONS: list[tuple[Callable[..., Any], tuple[Draw, ...]]] = [
    (rules.reset, (states, rule_set, wholes)),
    (rules.start_outcomes, (rule_set, lambda strange: strange.rng)),
    (rules.action_mask, (states,)),
    (rules.step, (states, wholes, wholes)),
    (lambda *given: rules.step(*given, check=False), (states, wholes, wholes)),
    (rules.chance_outcomes, (states, whole)),
    (rules.colours, (states,)),
    (rules.tolls, (states, wholes)),
    (rules.tolls, (states, whole)),
    (rules.scores, (states,)),
    (rules.is_over, (states,)),
    (rules.winner_shares, (states,)),
    (rules.ranks, (states,)),
    *((lambda *given, form=form: encode(given[0], form, given[1]), (states, draw))
      for form in ("planes", "flat", "features") for draw in (whole, wholes)),
    (encode, (states, anything)),
    (find_form, (anything,)),
    (lambda players: find_form("planes").shape(players), (whole,)),
    (lambda players: find_form("flat").space(players), (whole,)),
    (notation.parse_position, (text,)),
    (notation.parse_start, (text, whole)),
    (notation.format_position, (states,)),
    (notation.parse_move, (states, text)),
    (notation.format_move, (states, whole, whole)),
    (notation.legal_moves, (states,)),
    (notation.position_option, (anything,)),
    (notation.format_game, (record,)),
    (notation.parse_game, (text,)),
    (lambda record: list(notation.replay(record)), (record,)),
    (actions.laying_action, (whole, whole)),
    (actions.action_name, (whole,)),
    (actions.square_name, (whole,)),
    (actions.squares_of, (whole, states)),
    (actions.action_of_squares, (whole, whole, states)),
    (actions.describe, (whole, states)),
    (state.as_states, (states,)),
    (state.one_state, (states,)),
    (state.rule_set_of, (states,)),
    (state.owned_colours, (states, whole)),
    (spec.RuleSet.preset, (text, whole)),
    (spec.RuleSet.parse, (text, whole)),
    (spec.resolve_rules, (rule_set, whole)),
    (spec.check_num_players, (whole,)),
    (chance.checked_seed, (whole,)),
    (solver.turns_left, (states,)),
    (solver.solve, (states, lambda strange: strange.one_of(0, 1, -1, float("nan"), "1", True))),
    (lambda states, agent: load_agent(agent).act(states, np.random.default_rng(0)),
     (states, lambda strange: strange.one_of("random", "greedy", "expectimax"))),
]  # fmt: skip

METHODS: list[tuple[Callable[..., Any], tuple[Draw, ...]]] = [
    (Batch.step, (wholes,)),
    (Batch.step_games, (wholes, wholes)),
    (Batch.check_actions, (wholes, wholes)),
    (Batch.next_rolls, (wholes,)),
    (Batch.set_states, (states,)),
    (Batch.set_position, (whole, text)),
    (Batch.reset, (whole,)),
]


def call(strange: Strange, function: Callable[..., Any], draws: tuple[Draw, ...], *own: Any) -> str:
    """Calls a function with strange arguments; returns how it ended."""
    given = [draw(strange) for draw in draws]
    if strange.rng.random() < 0.4:
        given[strange.rng.integers(len(given))] = strange.anything()
    faulthandler.dump_traceback_later(LONGEST, exit=True)
    try:
        function(*own, *given)
    except (ValueError, TypeError) as error:
        return type(error).__name__
    except Exception as error:
        error.add_note(f"{getattr(function, '__name__', function)}{tuple(given)}")
        raise
    finally:
        faulthandler.cancel_dump_traceback_later()
    return "answered"


def wrong_call(strange: Strange) -> str:
    """One wrong call of a function or of a method, after which every game must be whole."""
    if strange.rng.random() < 0.6:
        return call(strange, *FUNCTIONS[strange.rng.integers(len(FUNCTIONS))])
    batch = strange.batches[strange.one_of(2, 3)]
    before = batch.states.tobytes()
    ended = call(strange, *METHODS[strange.rng.integers(len(METHODS))], batch)
    assert ended == "answered" or batch.states.tobytes() == before
    assert (batch.action_mask == rules.action_mask(batch.states)).all()
    assert (batch.observation == encode(batch.states, "flat")).all()
    if strange.rng.random() < 0.5:  # so that calls meet games at all stages
        mask = batch.action_mask
        batch.step((mask * strange.rng.random(mask.shape)).argmax(1))
    return ended


def main(count: int, seed: int) -> None:
    np.seterr(all="ignore")
    strange, ends = Strange(seed), Counter[str]()
    for _ in range(count):
        ends[wrong_call(strange)] += 1
    print(dict(ends))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
