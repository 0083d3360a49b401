"""The forms of observation: `planes` and `flat` against a slow computation, laws of all three."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from positions import RULES, half_turned, mirrored, random_states, sample, seats_rotated
from reference import COMPASS, Game, neighbour, turned

from marrakech_env import notation
from marrakech_env.batch import Batch
from marrakech_env.observation import FORMS, PLANES, encode, find_form
from marrakech_env.spec import RuleSet
from marrakech_env.state import OVER, STATE

DOCS = Path(__file__).resolve().parents[1] / "docs"
START = "/".join(["." * 14] * 7)
PLAYERS = [2, 3, 4]


def colour_slots(game: Game, seats: list[int]) -> list[int | None]:
    """The colours of the colour slots: with 2 players a seat's next colour, then his other one."""
    if game.num_players > 2:
        return list(seats)
    slots: list[int | None] = []
    for seat in seats:
        owned: list[int | None] = [*game.colours_of(seat), None]
        slots += [owned[1], owned[0]] if game.top[seat] == owned[1] else owned[:2]
    return slots


def expected_planes(game: Game, observer: int) -> dict[str, list[NDArray[np.int64]]]:
    """Every entry as a list of boards (7, 7), from the reference alone."""
    seats = [(observer + k) % game.num_players for k in range(game.num_players)]
    right, down = turned(game.facing, 1), turned(game.facing, 2)
    # From the upper left corner of the picture, found by walking from the middle of the board.
    corner = (3, 3)
    for _ in range(3):
        corner = neighbour(neighbour(corner, turned(right, 2)), turned(down, 2))
    squares = {}
    line = corner
    for row in range(7):
        here = line
        for column in range(7):
            squares[row, column] = here
            here = neighbour(here, right)
        line = neighbour(line, down)

    def board(test) -> NDArray[np.int64]:
        return np.array([[int(test(squares[r, c])) for c in range(7)] for r in range(7)])

    def shows(colour: int | None):
        return lambda s: s in game.board and game.board[s].colour == colour

    def linked(direction: str):
        return lambda s: (
            s in game.board and game.board.get(neighbour(s, direction)) is game.board[s]
        )

    stock = {c: n for p in game.players for c, n in game.stock[p].items()}
    slots = colour_slots(game, seats)
    constants = {
        "facing_east_west": [game.facing in "EW"],
        "money": [game.money[p] for p in seats],
        "rugs": [stock.get(c, 0) for c in slots],
        "eliminated": [game.eliminated[p] for p in seats],
        "turn": [game.phase != "-" and p == game.player for p in seats],
        "laying": [game.phase == "l"],
        "walking": [game.phase == "w"],
    }
    planes = {
        "colours": [board(shows(c)) for c in slots],
        "links": [board(linked(turned(game.facing, k))) for k in range(4)],
        "assam": [board(lambda s: s == game.assam)],
    }
    return planes | {
        name: [np.full((7, 7), int(value)) for value in values]
        for name, values in constants.items()
    }


@pytest.mark.parametrize("num_players", PLAYERS)
def test_planes_and_flat_equal_the_slow_computation(num_players: int) -> None:
    for states, game in sample(num_players, each=12, seed=10 + num_players):
        for seat in range(num_players):
            planes = encode(states, "planes", seat)[0]
            flat = encode(states, "flat", seat)[0]
            expected = expected_planes(game, seat)
            assert set(expected) == {entry.name for entry in PLANES.entries}
            for entry in PLANES.entries:
                boards = np.array(expected[entry.name])
                where = f"{entry.name} of seat {seat} in {game.text()}"
                found = planes[PLANES.part(entry.name, num_players, planes=True)]
                np.testing.assert_array_equal(found, np.minimum(boards, 255), where)
                numbers = boards.reshape(len(boards), -1)
                numbers = numbers if entry.by_square else numbers[:, 0]
                found = flat[PLANES.part(entry.name, num_players)]
                np.testing.assert_array_equal(found, numbers.ravel(), where)


def test_money_is_clipped_in_planes_only() -> None:
    states = notation.parse_position(f"{START} 33S 0s 300:12+12:0,255:12+12:3 official")
    assert encode(states, "planes")[0, PLANES.part("money", 2, planes=True)].max(
        axis=(1, 2)
    ).tolist() == [255, 255]
    assert encode(states, "flat")[0, PLANES.part("money", 2)].tolist() == [300, 255]


@pytest.mark.parametrize("num_players", PLAYERS)
@pytest.mark.parametrize("form", FORMS)
def test_every_observation_lies_in_its_space(form: str, num_players: int) -> None:
    space = find_form(form).space(num_players)
    for rule_text in RULES:
        states = random_states(rule_text, num_players, 8, seed=20)
        for players in (None, *range(num_players)):
            observations = encode(states, form, players)
            assert observations.dtype == space.dtype
            assert observations.shape == (len(states), *space.shape)
            inside = (observations >= space.low) & (observations <= space.high)
            assert inside.all(), np.argwhere(~inside)[0]


@pytest.mark.parametrize("form", FORMS)
def test_the_richest_position_lies_in_its_space(form: str) -> None:
    players = ",".join(["8191:100"] * 4)
    states = notation.parse_position(f"{START} 33S 0s {players} official;rugs=100;money=1000")
    states["money"][0] = [4 * 8191, 0, 0, 0]
    for seat in range(4):
        assert find_form(form).space(4).contains(encode(states, form, seat)[0])


@pytest.mark.parametrize("num_players", PLAYERS)
@pytest.mark.parametrize("form", FORMS)
def test_a_half_turn_changes_nothing(form: str, num_players: int) -> None:
    for states, game in sample(num_players, each=6, seed=30):
        other = notation.parse_position(half_turned(game.text()))
        for seat in range(num_players):
            np.testing.assert_allclose(
                encode(states, form, seat),
                encode(other, form, seat),
                atol=1e-5,
                err_msg=game.text(),
            )


@pytest.mark.parametrize("num_players", PLAYERS)
def test_a_reflection_mirrors_the_planes(num_players: int) -> None:
    links = PLANES.part("links", num_players, planes=True)
    east_west = PLANES.part("facing_east_west", num_players, planes=True)
    for states, game in sample(num_players, each=6, seed=31):
        for reflected in (mirrored(game.text()), half_turned(mirrored(game.text()))):
            other = notation.parse_position(reflected)
            for seat in range(num_players):
                expected = encode(states, "planes", seat)[0, :, :, ::-1].copy()
                expected[links] = expected[links][[0, 3, 2, 1]]
                expected[east_west] = 1 - expected[east_west]
                np.testing.assert_array_equal(encode(other, "planes", seat)[0], expected)


@pytest.mark.parametrize("num_players", PLAYERS)
@pytest.mark.parametrize("form", FORMS)
def test_seats_are_counted_from_the_observer(form: str, num_players: int) -> None:
    """When everybody moves up one seat, each sees from the new seat what he saw from the old."""
    for states, game in sample(num_players, each=6, seed=32):
        other = notation.parse_position(seats_rotated(game.text()))
        for seat in range(num_players):
            seen = encode(states, form, seat)
            found = encode(other, form, (seat + 1) % num_players)
            np.testing.assert_allclose(found, seen, atol=1e-5, err_msg=game.text())
        if game.phase != "-":
            np.testing.assert_array_equal(encode(states, form), encode(states, form, game.player))


@pytest.mark.parametrize("form", FORMS)
def test_the_names_of_two_own_colours_do_not_matter(form: str) -> None:
    board = "0>0<1v2-....../....1^......../" + "/".join(["." * 14] * 5)
    text = f"{board} 33S 0s 30:11+10:0,30:11+12:3 official"
    swapped = f"{board.translate(str.maketrans('01', '10'))} 33S 0s 30:10+11:1,30:11+12:3 official"
    first, second = notation.parse_position(text), notation.parse_position(swapped)
    for seat in (0, 1):
        np.testing.assert_array_equal(encode(first, form, seat), encode(second, form, seat))
    other_top = notation.parse_position(text.replace(":0,", ":1,"))
    assert (encode(first, form) != encode(other_top, form)).any()


@pytest.mark.parametrize("num_players", PLAYERS)
@pytest.mark.parametrize("form", FORMS)
def test_batch_shows_what_encode_shows(form: str, num_players: int) -> None:
    rng = np.random.default_rng(5)
    rule_set = RuleSet.preset("official", num_players, money=9)
    batch = Batch(32, num_players, rule_set, seed=5, observation=form)
    ended = 0
    for _ in range(150):
        np.testing.assert_array_equal(batch.observation, encode(batch.states, form))
        batch.step((batch.action_mask * rng.random(batch.action_mask.shape)).argmax(axis=1))
        ended += batch.done.sum()
    assert ended > 0


@pytest.mark.parametrize("form", FORMS)
def test_fill_writes_the_listed_games_only(form: str) -> None:
    states = random_states("official", 3, 8, seed=6)[:6]
    found = find_form(form)
    out = np.full((6, *found.shape(3)), 77, found.dtype)
    found.fill(states, np.array([4, 1]), np.array([-1, 2, -1, -1, 0, -1]), out)
    assert (out[[0, 2, 3, 5]] == 77).all()
    np.testing.assert_array_equal(out[1], encode(states[1], form, 2)[0])
    np.testing.assert_array_equal(out[4], encode(states[4], form, 0)[0])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("num_games", [1, 5])
def test_arrays_to_fill_are_zeros_aligned_to_64_bytes(form: str, num_games: int) -> None:
    found = find_form(form)
    kept = [found.zeros(num_games, 3) for _ in range(8)]  # the system aligns some by chance
    for array in kept:
        assert array.shape == (num_games, *found.shape(3))
        assert array.dtype == found.dtype
        assert array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert not array.any()


@pytest.mark.parametrize("form", FORMS)
def test_encode_takes_states_of_any_layout(form: str) -> None:
    states = random_states("official", 3, 8, seed=9)[:12]
    expected = encode(states, form, 1)
    frozen = states.copy()
    frozen.setflags(write=False)
    np.testing.assert_array_equal(encode(frozen, form, 1), expected)
    np.testing.assert_array_equal(encode(states[::-2], form, 1), expected[::-2])
    np.testing.assert_array_equal(encode(states, form, np.full(12, 1, np.uint8)), expected)


@pytest.mark.parametrize("form", FORMS)
def test_no_states_give_no_observations(form: str) -> None:
    assert encode(np.zeros(0, STATE), form).shape == (0, *find_form(form).shape(2))


@pytest.mark.parametrize("form", FORMS)
def test_a_finished_game_names_nobody_to_move(form: str) -> None:
    states = random_states("official;money=6", 3, 8, seed=7)
    finished = states[states["phase"] == OVER]
    assert len(finished) > 0
    schema = find_form(form).schema
    turn = schema.part("turn", 3, planes=form == "planes")
    for seat in range(3):
        assert not encode(finished, form, seat)[:, turn].any()


def test_unknown_form_names_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'pixels'.*planes, flat, features"):
        find_form("pixels")
    with pytest.raises(ValueError, match="planes, flat, features"):
        encode(np.zeros(1, STATE), "Planes")
    with pytest.raises(ValueError, match="planes, flat, features"):
        find_form(None)


@pytest.mark.parametrize(
    ("players", "message"),
    [
        (3, r"0\.\.2"),
        (-1, r"0\.\.2"),
        ([0, 1, 3, 0], r"0\.\.2"),
        ([0, 1], r"\(4,\)"),
        (1.0, "float64"),
        (True, "bool"),
    ],
)
def test_seats_that_do_not_play_are_refused(players: object, message: str) -> None:
    states = random_states("official", 3, 8, seed=8)[:4]
    with pytest.raises(ValueError, match=message):
        encode(states, "flat", players)


def test_entries_are_unique_and_explained() -> None:
    for form in FORMS.values():
        names = [entry.name for entry in form.schema.entries]
        assert len(set(names)) == len(names)
        assert all(entry.meaning and entry.low < entry.high for entry in form.schema.entries)
        with pytest.raises(ValueError, match=names[0]):
            form.schema.index("nothing")


def test_facing_letters_are_those_of_the_reference() -> None:
    assert [
        notation.parse_position(f"{START} 33{f} 0s 30:12+12:0,30:12+12:3 official")["facing"][0]
        for f in COMPASS
    ] == [0, 1, 2, 3]


def test_documented_tables_are_those_of_the_schemas() -> None:
    page = (DOCS / "environment.md").read_text(encoding="utf-8")
    updated = runpy.run_path(str(DOCS / "update_tables.py"))["updated"]
    assert updated(page) == page, "run python docs/update_tables.py"
