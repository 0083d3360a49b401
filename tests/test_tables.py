"""The look-up tables against their definitions."""

import numpy as np
import pytest

from marrakech_env import tables
from marrakech_env.spec import DIE

# The published table: for exits 0..6 of each edge, the re-entry square xy and the new facing.
TRACK = {
    "N": "10S 00S 30S 20S 50S 40S 60W",
    "E": "60S 62W 61W 64W 63W 66W 65W",
    "S": "06E 26N 16N 46N 36N 66N 56N",
    "W": "01E 00E 03E 02E 05E 04E 06N",
}


@pytest.mark.parametrize("facing", range(4))
def test_leaving_the_board_follows_the_edge_track(facing):
    for i, entry in enumerate(TRACK["NESW"[facing]].split()):
        x, y = [(i, 0), (6, i), (i, 6), (0, i)][facing]
        nx, ny, turned = tables.walk_one(x, y, facing)
        assert f"{nx}{ny}{'NESW'[turned]}" == entry


def test_a_walk_is_that_many_single_steps():
    for heading in range(tables.NUM_HEADINGS):
        reached = heading
        for steps in range(5):
            assert tables.WALK[steps, heading] == reached
            reached = tables.WALK[1, reached]


def test_every_walk_can_be_walked_back():
    """The track is its own inverse: turn round, walk as far, turn round, and stand as before."""
    turn_round = np.arange(tables.NUM_HEADINGS) ^ 2
    for steps in range(5):
        there = tables.WALK[steps]
        back = tables.WALK[steps][turn_round[there]]
        assert (turn_round[back] == np.arange(tables.NUM_HEADINGS)).all()


@pytest.mark.parametrize("x", range(7))
def test_there_are_4_to_12_placements_by_geometry(x):
    for y in range(7):
        for facing in range(4):
            heading = 4 * (7 * y + x) + facing
            count = int(tables.ON_BOARD[heading]).bit_count()
            assert 4 <= count <= 12
            pairs = zip(tables.FIRST_CELL[heading], tables.SECOND_CELL[heading], strict=True)
            on = [pair for pair in pairs if pair[0] >= 0]
            assert len({frozenset(map(int, pair)) for pair in on}) == count
            for first, second in on:
                assert abs(first % 7 - x) + abs(first // 7 - y) == 1
                assert abs(first % 7 - second % 7) + abs(first // 7 - second // 7) == 1
                assert second != 7 * y + x
    assert int(tables.ON_BOARD[0]).bit_count() == 4


def test_action_3_facing_north_is_the_square_ahead_and_its_western_neighbour():
    heading = 4 * 24  # (3, 3) facing north
    assert (tables.FIRST_CELL[heading, 0], tables.SECOND_CELL[heading, 0]) == (17, 16)
    assert (tables.FIRST_CELL[heading, 1], tables.SECOND_CELL[heading, 1]) == (17, 10)
    heading_east = heading + 1
    assert (tables.FIRST_CELL[heading_east, 4], tables.SECOND_CELL[heading_east, 4]) == (31, 38)


def test_the_die_has_six_faces_with_two_twos_and_two_threes():
    assert DIE == (1, 2, 2, 3, 3, 4)
    assert tables.DIE_PROBABILITY.tolist() == [0, 1 / 6, 2 / 6, 2 / 6, 1 / 6]


def test_tables_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        tables.WALK[0, 0] = 1


def test_bitboards_around_a_cell_hold_the_cells_so_many_steps_away():
    for cell in range(49):
        steps = [abs(cell % 7 - c % 7) + abs(cell // 7 - c // 7) for c in range(49)]
        for table, most in ((tables.BESIDE, 1), (tables.NEAR, 2)):
            assert [int(table[cell]) >> c & 1 for c in range(49)] == [0 < s <= most for s in steps]


def test_edges_and_corners():
    sides = [(cell % 7 in (0, 6)) + (cell // 7 in (0, 6)) for cell in range(49)]
    assert [int(tables.EDGES) >> c & 1 for c in range(49)] == [n > 0 for n in sides]
    assert [int(tables.CORNERS) >> c & 1 for c in range(49)] == [n == 2 for n in sides]
