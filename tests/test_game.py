"""`Game`: every property against the reference, undo, copies, records, dice, bad input."""

from __future__ import annotations

import copy
import pickle
import random

import numpy as np
import pytest
from positions import RULES
from reference import SQUARES, turned, walk
from reference import Game as Reference

import marrakech_env
from marrakech_env import Game, notation

PHASES = {"s": "steer", "l": "lay", "w": "walk", "-": "over"}


def check_position(game: Game, reference: Reference) -> None:
    """Compares every property of a game with the reference."""
    over = reference.phase == "-"
    legal = reference.legal_actions()
    players = list(reference.players)
    assert game.position == reference.text()
    assert game.player == (None if over else reference.player)
    assert game.phase == PHASES[reference.phase]
    assert game.legal_actions == legal
    assert game.legal_moves == [reference.move_text(action) for action in legal]
    assert game.is_over == reference.is_over()
    assert game.scores == reference.scores()
    assert game.ranks == reference.ranks()
    assert game.winner_shares == [float(share) for share in reference.winner_shares()]
    assert game.money == reference.money
    assert game.rugs_left == [reference.rugs_left(player) for player in players]
    tops = [reference.top[p] if reference.rugs_left(p) else None for p in players]
    assert game.next_colours == tops
    assert game.tolls().tolist() == reference.tolls()
    assert game.tolls(players[-1]).tolist() == reference.tolls(players[-1])
    rugs = sum(reference.rugs_left(player) for player in players)
    assert game.turns_left == (0 if over else rugs - (reference.phase == "l"))
    for action in legal:
        expected = {k: float(p) for k, p in reference.chance_outcomes(action)}
        assert dict(game.chance_outcomes(action)) == pytest.approx(expected)


def check_event(event, before: Reference, action: int, outcome: int) -> None:
    """Compares an event with what the reference says about the position before it."""
    assert (event.player, event.phase) == (before.player, PHASES[before.phase])
    assert (event.action, event.outcome) == (action, outcome)
    assert event.move == before.move_text(action, outcome)
    if before.phase == "l":
        squares = before.placement(action)
        assert [SQUARES[cell] for cell in event.rug] == list(squares)
        assert [(SQUARES[cell], colour) for cell, colour in event.covered] == [
            (square, before.board[square].colour) for square in squares if square in before.board
        ]
        assert event.next_colour == (outcome if outcome >= 0 else None)
        assert (event.die, event.path, event.toll_due, event.eliminated) == (
            None,
            None,
            None,
            False,
        )
        return
    assert (event.rug, event.covered, event.next_colour) == (None, None, None)
    if outcome < 0:
        assert (event.die, event.path, event.toll_due) == (None, None, None)
        return
    facing = turned(before.facing, action - 1)
    path = [walk(before.assam, facing, steps)[0] for steps in range(1, outcome + 1)]
    assert [SQUARES[cell] for cell in event.path] == path
    assert event.die == outcome
    due, money = before.due(before.player, path[-1]), before.money[before.player]
    if due == 0:
        assert (event.toll_due, event.toll_paid, event.payee) == (None, None, None)
    else:
        payee = before.owner(before.board[path[-1]].colour)
        assert (event.toll_due, event.toll_paid, event.payee) == (due, min(due, money), payee)
    assert event.eliminated == (due > money)


def play_and_compare(rules: str, players: int, seed: int, every: int = 1) -> None:
    """A random game to its end, compared throughout, then taken back to its start."""
    rng = random.Random(seed)
    game = Game(players, rules, seed=seed)
    start = game.position
    positions = []
    reference = Reference.from_text(start)
    while not game.is_over:
        if len(positions) % every == 0:
            check_position(game, reference)
        positions.append(game.position)
        action = rng.choice(game.legal_actions)
        before = copy.deepcopy(reference)
        event = game.play(action if rng.random() < 0.5 else reference.move_text(action))
        reference.apply(action, event.outcome)
        check_event(event, before, action, event.outcome)
    check_position(game, reference)
    again = Game.from_record(game.record())
    assert (again.position, again.history) == (game.position, game.history)
    for position in reversed(positions):
        last = game.history[-1]
        assert game.undo() == last
        assert game.position == position
    assert game.history == []
    with pytest.raises(IndexError, match="at its start"):
        game.undo()


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("rules", RULES)
def test_every_property_agrees_with_the_reference(rules: str, players: int) -> None:
    play_and_compare(rules, players, seed=players)


@pytest.mark.long
@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("rules", RULES)
def test_three_thousand_games_agree_with_the_reference(rules: str, players: int) -> None:
    for seed in range(125):  # times 3 numbers of players and 8 rule sets
        play_and_compare(rules, players, seed)


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("rules", ["official;facing=random", "boardgamearena;steering=end"])
def test_the_dice_are_those_of_the_aec_environment(rules: str, players: int) -> None:
    env = marrakech_env.raw_env(players, rules)
    for seed in range(5):
        env.reset(seed=seed)
        game, rng = Game(players, rules, seed=seed), random.Random(seed)
        while not game.is_over:
            assert game.position == env.position
            action = rng.choice(game.legal_actions)
            game.play(action)
            env.step(action)
        assert game.position == env.position


def test_given_chance_leaves_the_dice_of_later_turns_as_they_are() -> None:
    drawn, given = Game(seed=4), Game(seed=4)
    drawn.play("S")
    given.play("S", outcome=4)
    for game in (drawn, given):
        game.play(game.legal_actions[0])
    assert drawn.play("L").die == given.play("L").die


def test_the_same_turn_draws_the_same_after_undo() -> None:
    game = Game(seed=1)
    first = game.play("L")
    game.undo()
    assert game.play("L") == first


def test_copies_are_independent() -> None:
    game = Game(3, seed=2)
    game.play("L")
    for twin in (game.copy(), copy.deepcopy(game), pickle.loads(pickle.dumps(game))):
        assert (twin.position, twin.history, twin.seed) == (game.position, game.history, game.seed)
        twin.play(twin.legal_actions[0])
        assert len(game.history) == 1
        assert twin.undo().phase == "lay"
        twin.undo()
    assert len(game.history) == 1


def test_the_state_is_a_copy() -> None:
    game = Game(seed=0)
    position = game.position
    game.state["money"] = 5
    game.history.clear()
    assert game.position == position


def test_a_position_brings_its_players_and_rules() -> None:
    text = Game(4, "comp1110;money=7", seed=0).position
    game = Game(num_players=2, rules="official", seed=9, position=text)
    assert (game.position, game.num_players) == (text, 4)


def test_finished_positions_are_accepted() -> None:
    board = "/".join(["." * 14] * 7)
    game = Game(position=f"{board} 33S - x1:0,60:12+12:2 official")
    assert (game.player, game.phase, game.legal_moves) == (None, "over", [])
    assert (game.is_over, game.turns_left, game.winner_shares) == (True, 0, [0.0, 1.0])
    with pytest.raises(ValueError, match="legal moves: none, it is over"):
        game.play("L2")


def test_a_walker_without_a_rug_counts_as_a_turn_to_come() -> None:
    board = "/".join(["." * 14] * 7)
    game = Game(position=f"{board} 33S 0s 30:0,30:2 comp1110")
    assert game.turns_left == 3
    assert game.play("S1").die == 1
    assert (game.player, game.turns_left) == (1, 2)


@pytest.mark.parametrize(
    "move",
    [
        "X",
        "",
        "l",
        "L5",
        "L0",
        "L-1",
        "L 2",
        "33-99",
        "33-34",
        "55-66=7",
        "L2=1",
        15,
        3,
        -1,
        99,
        None,
        True,
        2.0,
        1j,
        [0],
        b"L",
        np.array([0, 1]),
        {},
        float("nan"),
    ],
)
def test_bad_moves_list_the_legal_ones_and_change_nothing(move: object) -> None:
    game = Game(seed=0)
    position = game.position
    with pytest.raises(ValueError, match=r"legal moves: L \(0\), S \(1\), R \(2\)"):
        game.play(move)
    with pytest.raises(ValueError, match=r"legal moves: L \(0\), S \(1\), R \(2\)"):
        game.chance_outcomes("X" if isinstance(move, str) else move)
    assert (game.position, game.history) == (position, [])


@pytest.mark.parametrize("outcome", [0, 5, -1, 2.5, "2", True, [1]])
def test_bad_outcomes_are_refused(outcome: object) -> None:
    game = Game(seed=0)
    with pytest.raises(ValueError, match=r"outcome .*legal moves: L"):
        game.play("L", outcome)
    assert game.history == []


def test_text_and_argument_must_agree() -> None:
    game = Game(seed=0)
    with pytest.raises(ValueError, match="the outcome 3 does not fit"):
        game.play("L2", outcome=3)
    assert game.play("L2", outcome=2).die == 2


@pytest.mark.parametrize("move", [np.int8(0), np.array(0), 0, "L"])
def test_whole_numbers_of_all_kinds_are_moves(move: object) -> None:
    assert Game(seed=0).play(move).action == 0


def test_it_is_shown_as_text_and_as_a_picture() -> None:
    game = Game(seed=5)
    assert "Player 0 to steer and roll" in str(game)
    assert game._repr_svg_().startswith("<svg")
    assert eval(repr(game), {"Game": Game}).position == game.position


def test_a_record_is_that_of_notation() -> None:
    game = Game(seed=5)
    for _ in range(6):
        game.play(game.legal_actions[-1])
    text = notation.format_game(game.record())
    assert Game.from_record(notation.parse_game(text)).history == game.history
