"""Laws that hold in every position of every rule set, on random positions of random games.

Positions are drawn as texts, so that a failing example can be read and pasted. What is written
here about symmetries and places works on those texts and shares nothing with the package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from marrakech_env import rules
from marrakech_env.actions import squares_of
from marrakech_env.batch import Batch
from marrakech_env.notation import format_position, parse_position
from marrakech_env.spec import PRESETS, RuleSet
from marrakech_env.state import LAY, OVER, STEER, WALK, States, as_states, owned_colours

PLAYERS = st.sampled_from([2, 3, 4])
RUNNING = (STEER, LAY, WALK)
ANY_PHASE = (*RUNNING, OVER)
SEEDS = st.integers(0, 2**32 - 1)
# Neither a slow nor a busy machine shall fail a test.
some = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])


# ------------------------------------------------------------------------------- random positions


@st.composite
def rule_sets(draw: st.DrawFn, num_players: int, rugs: Sequence[int] = (24, 12, 6, 2)) -> RuleSet:
    """Any preset and options; little money is common, because it brings eliminations."""
    options = {
        "rugs": st.sampled_from(rugs),
        "colours": st.sampled_from(["shuffled", "coin", "alternate", "single"]),
        "cover_own": st.integers(0, 1),
        "play_on": st.integers(0, 1),
        "steering": st.sampled_from(["start", "end"]),
        "money": st.sampled_from([12, 30, 4, 0]),
        "tie_break": st.sampled_from(["money", "squares"]),
        "facing": st.sampled_from(["S", "N", "E", "W", "random"]),
    }
    preset = draw(st.sampled_from(list(PRESETS)))
    return RuleSet.preset(preset, num_players, **draw(st.fixed_dictionaries(options)))


def played(rule_set: RuleSet, seed: int) -> States:
    """All positions (N,) of a game of random legal actions; the last one is over."""
    batch, rng = Batch(1, rule_set.num_players, rule_set, seed), np.random.default_rng(seed)
    game = []
    while not batch.done[0]:
        game.append(batch.states.copy())
        batch.step((batch.action_mask * rng.random(batch.action_mask.shape)).argmax(1))
    return np.concatenate([*game, batch.final_states])


@st.composite
def positions(
    draw: st.DrawFn, phases: Sequence[int] = RUNNING, num_players: int | None = None
) -> str:
    """A position of a random game in one of some phases, early and late alike."""
    rule_set, seed = draw(rule_sets(num_players or draw(PLAYERS))), draw(SEEDS)
    game = played(rule_set, seed)
    game = game[np.isin(game["phase"], phases)]
    # Not drawn by hypothesis, which prefers small numbers and so would hardly leave the start.
    return format_position(game[np.random.default_rng(seed).integers(len(game))])


@dataclass(frozen=True)
class Decisions:
    """Every legal action of a position with every outcome that chance can bring.

    Attributes:
        before: The position, once for each decision.
        actions, outcomes: The decisions.
    """

    before: States
    actions: np.ndarray
    outcomes: np.ndarray

    @cached_property
    def after(self) -> States:
        states = self.before.copy()
        rules.step(states, self.actions, self.outcomes)
        return states


def decisions(states: States) -> Decisions:
    pairs = [
        (action, outcome)
        for action in np.flatnonzero(rules.action_mask(states)[0])
        for outcome in rules.chance_outcomes(states, action)[0]
    ]
    actions, outcomes = np.array(pairs).T
    return Decisions(np.repeat(states, len(pairs)), actions, outcomes)


# ------------------------------------------------------------------------------ masks and chance


@some
@given(positions())
def test_something_is_legal_while_the_game_runs(text: str) -> None:
    """Nobody ever passes (rule 8); steering and laying never overlap."""
    state = parse_position(text)
    legal = np.flatnonzero(rules.action_mask(state)[0]).tolist()
    if state["phase"][0] == LAY:
        assert 2 <= len(legal) <= 12
        assert set(legal) <= set(range(3, 15))
    else:
        assert legal == {STEER: [0, 1, 2], WALK: [1]}[int(state["phase"][0])]


@some
@given(positions())
def test_outcomes_of_chance_are_distinct_and_their_probabilities_sum_to_1(text: str) -> None:
    state = parse_position(text)
    for action in np.flatnonzero(rules.action_mask(state)[0]):
        outcomes, probabilities = rules.chance_outcomes(state, action)
        assert (np.diff(outcomes) > 0).all()
        assert (probabilities > 0).all()
        assert probabilities.sum() == pytest.approx(1)


@some
@given(positions())
def test_copies_stepped_with_different_chance_diverge(text: str) -> None:
    """So what chance did can be told from the action and the positions before and after it."""
    every = decisions(parse_position(text))
    for action in np.unique(every.actions):
        after = every.after[every.actions == action]
        assert len({state.tobytes() for state in after}) == len(after)
    assert {format_position(state) for state in every.before} == {text}


# --------------------------------------------------------------------------- what a decision does


@some
@given(positions())
def test_every_decision_keeps_the_invariants_and_the_money(text: str) -> None:
    every = decisions(parse_position(text))
    as_states(every.after)
    assert (every.after["money"].sum(1) == every.before["money"].sum(1)).all()


@some
@given(positions((STEER, WALK)))
def test_a_walk_charges_the_toll_to_the_mover_for_the_owner(text: str) -> None:
    """Rules 6 and 7: all of it, or all that he has and then he is out."""
    state = parse_position(text)
    mover = int(state["player"][0])
    every = decisions(state)
    tolls, colours = rules.tolls(state)[0], rules.colours(state)[0]
    owners = {
        colour: seat
        for seat in range(state["num_players"][0])
        for colour in owned_colours(state, seat)
    }
    for after, outcome in zip(every.after, every.outcomes):
        due = int(tolls[after["assam"]]) if outcome >= 0 else 0
        expected = state["money"][0].copy()
        paid = min(due, expected[mover])
        if due:
            expected[mover] -= paid
            expected[owners[int(colours[after["assam"]])]] += paid
        assert after["money"].tolist() == expected.tolist()
        assert (after["eliminated"][mover] > 0) == (paid < due)
    assert (rules.colours(every.after) == colours).all()


@some
@given(positions((LAY,)))
def test_laying_shows_the_next_rug_on_two_squares_and_changes_no_other(text: str) -> None:
    state = parse_position(text)
    every = decisions(state)
    before, mover = rules.colours(state)[0], int(state["player"][0])
    for after, action, scores in zip(every.after, every.actions, rules.scores(every.after)):
        expected = before.copy()
        covered = list(squares_of(action, state) or ())
        expected[covered] = state["next_colour"][0, mover]
        assert rules.colours(after)[0].tolist() == expected.tolist()
        lost = [np.isin(before[covered], owned_colours(state, s)).sum() for s in range(len(scores))]
        gained = np.where(np.arange(len(scores)) == mover, 2, 0)
        in_game = state["eliminated"][0, : len(scores)] == 0
        assert (scores == rules.scores(state)[0] + (gained - lost) * in_game).all()
    assert (every.after["money"] == every.before["money"]).all()
    assert (every.after["rugs"].sum(1) == every.before["rugs"].sum(1) - 1).all()


# --------------------------------------------------------------------------------------- batches


@some
@given(st.data())
def test_a_batch_is_its_games_one_by_one(data: st.DataObject) -> None:
    """Rule sets and phases are mixed in it, and finished games stand between running ones."""
    num_players = data.draw(PLAYERS)
    texts = data.draw(st.lists(positions(ANY_PHASE, num_players), min_size=2, max_size=6))
    singles = [parse_position(text) for text in texts]
    states = np.concatenate(singles)
    seats = np.arange(len(states)) % num_players
    functions: list[Callable[..., Any]] = [
        rules.action_mask,
        rules.tolls,
        rules.colours,
        rules.scores,
        rules.is_over,
        rules.winner_shares,
        rules.ranks,
    ]
    for function in functions:
        assert (function(states) == np.concatenate([function(s) for s in singles])).all()
    alone = [rules.tolls(single, seat) for single, seat in zip(singles, seats)]
    assert (rules.tolls(states, seats) == np.concatenate(alone)).all()

    running = np.flatnonzero(~rules.is_over(states))
    actions, outcomes = np.ones((2, len(states)), np.int64)
    for game in running:
        every = decisions(singles[game])
        pick = data.draw(st.integers(0, len(every.actions) - 1))
        actions[game], outcomes[game] = every.actions[pick], every.outcomes[pick]
    rules.step(states, actions, outcomes)
    for single, action, outcome in zip(singles, actions, outcomes):
        rules.step(single, [action], [outcome])
    assert (states == np.concatenate(singles)).all()


# -------------------------------------------------------------------------- symmetries of the board

DIRECTIONS = {"N": (0, -1), "E": (1, 0), "S": (0, 1), "W": (-1, 0)}
MARKS = dict(zip("NESW", "^>v<"))


@dataclass(frozen=True)
class Isometry:
    """A symmetry of the square: (x, y), seen from the middle, goes to (ax + by, cx + dy)."""

    a: int
    b: int
    c: int
    d: int

    def square(self, x: int, y: int) -> tuple[int, int]:
        new_x, new_y = self.vector(x - 3, y - 3)
        return new_x + 3, new_y + 3

    def vector(self, x: int, y: int) -> tuple[int, int]:
        return self.a * x + self.b * y, self.c * x + self.d * y

    def facing(self, letter: str) -> str:
        turned = self.vector(*DIRECTIONS[letter])
        return next(letter for letter, step in DIRECTIONS.items() if step == turned)

    def marks(self, square: str) -> str:
        """Two characters of a BOARD field: the mark turns with the board."""
        names = {mark: name for name, mark in MARKS.items()}
        mark = square[1]
        return square[0] + (MARKS[self.facing(names[mark])] if mark in names else mark)

    def position(self, text: str) -> str:
        """The position on the turned board; `facing=` of the rules tells the start only."""
        board, assam, *rest = text.split(" ")
        rows, turned = board.split("/"), [[""] * 7 for _ in range(7)]
        for y, row in enumerate(rows):
            for x in range(7):
                new_x, new_y = self.square(x, y)
                turned[new_y][new_x] = self.marks(row[2 * x : 2 * x + 2])
        new_x, new_y = self.square(int(assam[0]), int(assam[1]))
        new_assam = f"{new_x}{new_y}{self.facing(assam[2])}"
        return " ".join(["/".join(map("".join, turned)), new_assam, *rest])

    @property
    def mirrors(self) -> bool:
        return self.a * self.d - self.b * self.c < 0

    def action(self, action: int) -> int:
        """A reflection swaps left and right, of steering, of sides and of turns."""
        if not self.mirrors:
            return action
        if action < 3:
            return 2 - action
        side, turn = divmod(action - 3, 3)
        return 3 + 3 * (-side % 4) + 2 - turn

    def cells(self) -> list[int]:
        """Where each cell 0..48 goes."""
        moved = [self.square(cell % 7, cell // 7) for cell in range(49)]
        return [7 * y + x for x, y in moved]


HALF_TURN = Isometry(-1, 0, 0, -1)
MAIN_DIAGONAL = Isometry(0, 1, 1, 0)  # which joins the corners (0, 0) and (6, 6)
OTHER_DIAGONAL = Isometry(0, -1, -1, 0)
SYMMETRIES = {
    "half turn": HALF_TURN,
    "reflection in the main diagonal": MAIN_DIAGONAL,
    "reflection in the other diagonal": OTHER_DIAGONAL,
}
NO_SYMMETRIES = {
    "quarter turn right": Isometry(0, -1, 1, 0),
    "quarter turn left": Isometry(0, 1, -1, 0),
    "mirror east-west": Isometry(-1, 0, 0, 1),
    "mirror north-south": Isometry(1, 0, 0, -1),
}


@pytest.mark.parametrize("isometry", SYMMETRIES.values(), ids=SYMMETRIES)
@some
@given(positions(ANY_PHASE))
def test_turned_boards_are_played_alike(isometry: Isometry, text: str) -> None:
    state, turned = parse_position(text), parse_position(isometry.position(text))
    cells, actions = isometry.cells(), [isometry.action(action) for action in range(15)]
    assert (rules.tolls(turned)[0, cells] == rules.tolls(state)[0]).all()
    assert (rules.colours(turned)[0, cells] == rules.colours(state)[0]).all()
    assert (rules.action_mask(turned)[0, actions] == rules.action_mask(state)[0]).all()
    for function in (rules.scores, rules.ranks, rules.winner_shares):
        assert (function(turned) == function(state)).all()
    if rules.is_over(state)[0]:
        return
    every = decisions(state)
    for action in np.unique(every.actions):
        for of_one, of_other in zip(
            rules.chance_outcomes(state, action),
            rules.chance_outcomes(turned, actions[action]),
        ):
            assert of_one.tolist() == of_other.tolist()
    after = np.repeat(turned, len(every.actions))
    rules.step(after, [actions[action] for action in every.actions], every.outcomes)
    for one, other in zip(every.after, after):
        assert format_position(other) == isometry.position(format_position(one))


def empty_boards() -> list[str]:
    """Assam on every square with every facing, and nothing else on the board."""
    board = "/".join(["." * 14] * 7)
    return [
        f"{board} {x}{y}{facing} 0s 30:15,30:15 comp1110"
        for x in range(7)
        for y in range(7)
        for facing in "NESW"
    ]


def test_turns_of_a_board_are_a_group_of_four() -> None:
    for text in empty_boards():
        for isometry in SYMMETRIES.values():
            assert isometry.position(isometry.position(text)) == text
        assert HALF_TURN.position(text) == MAIN_DIAGONAL.position(OTHER_DIAGONAL.position(text))


@pytest.mark.parametrize("isometry", NO_SYMMETRIES.values(), ids=NO_SYMMETRIES)
def test_other_turns_of_the_square_do_not_fit_the_track(isometry: Isometry) -> None:
    def stepped(text: str) -> str:
        states = parse_position(text)
        rules.step(states, [1], [1])
        return format_position(states)

    assert any(
        stepped(isometry.position(t)) != isometry.position(stepped(t)) for t in empty_boards()
    )


# ---------------------------------------------------------------------------- symmetry of the seats


@dataclass(frozen=True)
class Rotation:
    """Everybody moves `seats` on, and takes money, rugs, colours and turn along."""

    seats: int
    players: int
    colours: int  # of all players together

    def colour(self, colour: int) -> int:
        return (colour + self.seats * self.colours // self.players) % self.colours

    def position(self, text: str) -> str:
        board, assam, turn, players, rule_text = text.split(" ")
        squares = [str(self.colour(int(c))) if c.isdigit() else c for c in board]
        if turn != "-":
            turn = f"{(int(turn[0]) + self.seats) % self.players}{turn[1:]}"
        entries = []
        for entry in players.split(","):
            *counts, last = entry.split(":")
            if len(counts) == 2:  # money, rugs of both colours, next colour
                last = str(self.colour(int(last))) if last != "-" else last
            entries.append(":".join([*counts, last]))
        moved = entries[-self.seats :] + entries[: -self.seats]
        return " ".join(["".join(squares), assam, turn, ",".join(moved), rule_text])


@some
@given(st.data())
def test_rotated_seats_play_alike(data: st.DataObject) -> None:
    text = data.draw(positions(ANY_PHASE))
    state = parse_position(text)
    players = int(state["num_players"][0])
    seats = data.draw(st.integers(1, players - 1))
    rotation = Rotation(seats, players, players * len(owned_colours(state, 0)))
    rotated = parse_position(rotation.position(text))
    assert (rules.tolls(rotated) == rules.tolls(state)).all()
    assert (rules.action_mask(rotated) == rules.action_mask(state)).all()
    for function in (rules.scores, rules.ranks, rules.winner_shares):
        assert (function(rotated) == np.roll(function(state), seats, axis=1)).all()
    if rules.is_over(state)[0]:
        return
    every = decisions(state)
    outcomes = every.outcomes.copy()
    if state["phase"][0] == LAY:
        outcomes = np.array([rotation.colour(c) if c >= 0 else c for c in outcomes])
    after = np.repeat(rotated, len(outcomes))
    rules.step(after, every.actions, outcomes)
    for one, other in zip(every.after, after):
        assert format_position(other) == rotation.position(format_position(one))


# --------------------------------------------------------------------------------- finished games


@st.composite
def games(draw: st.DrawFn) -> list[str]:
    """A whole random game with few rugs, where equal scores are common."""
    game = played(draw(rule_sets(draw(PLAYERS), rugs=(2, 4, 6))), draw(SEEDS))
    return [format_position(state) for state in game]


def places(text: str) -> list[int]:
    """Places by rules 7 and 10, read off the fields of the position text of a finished game."""
    board, _, _, players, rule_text = text.split(" ")
    standings = []
    for seat, entry in enumerate(players.split(",")):
        first = entry.split(":")[0]
        if first.startswith("x"):
            standings.append((0, int(first[1:]), 0))
            continue
        money, colours = int(first), (2 * seat, 2 * seat + 1) if "+" in players else (seat,)
        squares = sum(board.count(str(colour)) for colour in colours)
        tie = squares if "tie_break=squares" in rule_text else money
        standings.append((1, money + squares, tie))
    return [1 + sum(other > own for other in standings) for own in standings]


@some
@given(games())
def test_places_and_shares_of_the_win_follow_from_the_scores(game: list[str]) -> None:
    end = parse_position(game[-1])
    expected = places(game[-1])
    winners = np.array(expected) == 1
    assert rules.ranks(end)[0].tolist() == expected
    assert rules.winner_shares(end)[0] == pytest.approx(winners / winners.sum())
    assert rules.scores(end)[0, winners].min() == rules.scores(end).max()


@some
@given(games())
def test_a_game_is_over_at_its_last_position_only(game: list[str]) -> None:
    states = np.concatenate([parse_position(text) for text in game])
    assert rules.is_over(states).tolist() == [False] * (len(game) - 1) + [True]
    assert not rules.action_mask(states)[-1].any()
    assert not rules.ranks(states)[:-1].any()
    assert not rules.winner_shares(states)[:-1].any()


@some
@given(games())
def test_every_rug_is_laid_where_nobody_is_eliminated(game: list[str]) -> None:
    """So the length of a game is known; eliminations only shorten it."""
    end = parse_position(game[-1])
    every_rug = int(end["num_players"][0]) * int(end["start_rugs"][0])
    laid = sum(text.split(" ")[2].endswith("l") for text in game)
    assert laid <= every_rug
    if not end["eliminated"].any():
        assert laid == every_rug
        assert not end["rugs"].any()
