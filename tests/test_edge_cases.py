"""The thirty edge cases of docs/rules.md section 4, told to the kernels and to the reference.

A position is named by the rugs laid so far, in their order, as `colour:first-second`, and by the
fields of the position text. Both engines answer in texts, so a test reads like the rules do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import pytest
from reference import Game

from marrakech_env import notation, rules

ONE_COLOUR = "30:15,30:15,30:15"
TWO_COLOURS = "30:12+12:0,30:12+12:2"
SQUARES = [f"{x}{y}" for y in range(7) for x in range(7)]
MARKS = {(0, -1): "^", (1, 0): ">", (0, 1): "v", (-1, 0): "<"}


class Kernels:
    """One position, played by the compiled kernels through the public functions."""

    def __init__(self, text: str) -> None:
        """Read a position text."""
        self.states = notation.parse_position(text)

    def play(self, *moves: str) -> Kernels:
        """Play moves, each of which has to be legal."""
        for move in moves:
            action, outcome = notation.parse_move(self.states, move)
            assert rules.action_mask(self.states)[0, action], f"{move} in {self.text()}"
            rules.step(self.states, np.array([action]), np.array([outcome]))
        return self

    def legal(self) -> set[str]:
        """The legal moves without their chance part."""
        actions = np.flatnonzero(rules.action_mask(self.states)[0])
        return {self._without_chance(int(action)) for action in actions}

    def _without_chance(self, action: int) -> str:
        outcome = int(rules.chance_outcomes(self.states, action)[0][0])
        text = notation.format_move(self.states, action, outcome)
        return text[0] if action < 3 else text.split("=")[0]

    def tolls(self) -> dict[str, int]:
        """What the player to move would owe on each square."""
        return dict(zip(SQUARES, rules.tolls(self.states)[0].tolist(), strict=True))

    def text(self) -> str:
        """The position text."""
        return notation.format_position(self.states)

    def scores(self) -> list[int]:
        """Every player's score."""
        return rules.scores(self.states)[0].tolist()

    def shares(self) -> list[float]:
        """Every player's share of the win."""
        return rules.winner_shares(self.states)[0].tolist()

    def ranks(self) -> list[int]:
        """Every player's place."""
        return rules.ranks(self.states)[0].tolist()


class Reference:
    """The same, played by the slow reference."""

    def __init__(self, text: str) -> None:
        """Read a position text."""
        self.game = Game.from_text(text)

    def play(self, *moves: str) -> Reference:
        """Play moves, each of which has to be legal."""
        for move in moves:
            choices = {
                self.game.move_text(action, outcome): (action, outcome)
                for action in self.game.legal_actions()
                for outcome, _ in self.game.chance_outcomes(action)
            }
            self.game.apply(*choices[move])
        return self

    def legal(self) -> set[str]:
        """The legal moves without their chance part."""
        return {self.game.move_text(action) for action in self.game.legal_actions()}

    def tolls(self) -> dict[str, int]:
        """What the player to move would owe on each square."""
        return dict(zip(SQUARES, self.game.tolls(), strict=True))

    def text(self) -> str:
        """The position text."""
        return self.game.text()

    def scores(self) -> list[int]:
        """Every player's score."""
        return self.game.scores()

    def shares(self) -> list[float]:
        """Every player's share of the win."""
        return [float(share) for share in self.game.winner_shares()]

    def ranks(self) -> list[int]:
        """Every player's place."""
        return self.game.ranks()


Position = Kernels | Reference
Setup = Callable[..., Position]


def board_text(rugs: Iterable[str]) -> str:
    """The BOARD field after laying `colour:first-second` rugs in this order."""
    board: dict[str, tuple[int, str, str]] = {}
    for number, rug in enumerate(rugs):
        colour, squares = rug.split(":")
        first, second = squares.split("-")
        board[first] = number, colour, second
        board[second] = number, colour, first

    def word(square: str) -> str:
        if square not in board:
            return ".."
        number, colour, other = board[square]
        if board[other][0] != number:
            return f"{colour}-"
        return colour + MARKS[int(other[0]) - int(square[0]), int(other[1]) - int(square[1])]

    words = [word(square) for square in SQUARES]
    return "/".join("".join(words[7 * y : 7 * y + 7]) for y in range(7))


@pytest.fixture(params=[Kernels, Reference])
def setup(request: pytest.FixtureRequest) -> Setup:
    """A function that sets up a position in one of the two engines."""

    def make(
        rugs: str = "",
        assam: str = "33S",
        turn: str = "0s",
        players: str = ONE_COLOUR,
        rule_set: str = "official",
    ) -> Position:
        return request.param(" ".join([board_text(rugs.split()), assam, turn, players, rule_set]))

    return make


def assam(position: Position) -> str:
    """Where Assam stands and his facing."""
    return position.text().split()[1]


def turn(position: Position) -> str:
    """Whose turn it is and what he has to do."""
    return position.text().split()[2]


def players(position: Position) -> str:
    """Money and rugs of the players."""
    return position.text().split()[3]


def test_case_01_corner_loop_returns_assam_to_his_square_and_payment_is_due(setup: Setup) -> None:
    loop = setup("1:60-61", assam="60N").play("S1")
    assert (assam(loop), turn(loop), players(loop)) == ("60W", "0l", "28:15,32:15,30:15")
    own = setup("0:60-61", assam="60N").play("S1")
    assert (assam(own), players(own)) == ("60W", ONE_COLOUR)


def test_case_02_corner_loop_goes_on_west_along_the_north_edge(setup: Setup) -> None:
    assert assam(setup(assam="60N").play("S4")) == "30W"


def test_case_03_corner_loop_entered_eastward_leaves_southward(setup: Setup) -> None:
    assert assam(setup(assam="60E").play("S1")) == "60S"


def test_case_04_south_west_loop_entered_southward_leaves_eastward(setup: Setup) -> None:
    assert assam(setup(assam="06S").play("S2")) == "16E"


def test_case_05_south_west_loop_entered_westward_leaves_northward(setup: Setup) -> None:
    assert assam(setup(assam="06W").play("S4")) == "03N"


def test_case_06_facing_after_the_track_is_the_one_the_next_player_turns_from(
    setup: Setup,
) -> None:
    assert assam(setup(assam="31N").play("S3")) == "21S"
    next_turn = setup(assam="21S", turn="1s")
    assert next_turn.legal() == {"L", "S", "R"}
    ends = [assam(setup(assam="21S", turn="1s").play(move)) for move in ("L1", "S1", "R1")]
    assert ends == ["31E", "22S", "11W"]


def test_case_07_walk_over_the_north_edge_spends_one_step_on_re_entry(setup: Setup) -> None:
    assert assam(setup(assam="33N").play("S4")) == "20S"
    assert assam(setup(assam="33N").play("S3")) == "30N"


def test_case_08_walk_over_the_east_edge(setup: Setup) -> None:
    assert assam(setup(assam="63E").play("S4")) == "34W"


def test_case_09_one_walk_meets_the_track_at_most_once_and_only_loops_return(setup: Setup) -> None:
    steps = {"N": (0, -1), "E": (1, 0), "S": (0, 1), "W": (-1, 0)}
    starts = [square + facing for square in SQUARES for facing in steps]
    one_step = {start: assam(setup(assam=start).play("S1")) for start in starts}
    returned = set()
    for start in starts:
        here, track_turns = start, 0
        for die in (1, 2, 3, 4):
            dx, dy = steps[here[2]]
            ahead = f"{int(here[0]) + dx}{int(here[1]) + dy}{here[2]}"
            here, track_turns = one_step[here], track_turns + (one_step[here] != ahead)
            assert assam(setup(assam=start).play(f"S{die}")) == here
            assert track_turns <= 1
            if here[:2] == start[:2]:
                returned.add((start, die))
    assert returned == {("60N", 1), ("60E", 1), ("06S", 1), ("06W", 1)}


def test_case_10_diagonal_contact_does_not_connect(setup: Setup) -> None:
    diagonal = setup("1:33-34 1:42-52", assam="23E")
    assert diagonal.tolls()["33"] == 2
    assert players(diagonal.play("S1")) == "28:15,32:15,30:15"
    assert setup("1:33-34 1:43-53").tolls()["33"] == 4


def test_case_11_a_rug_laid_across_splits_a_region(setup: Setup) -> None:
    whole = "1:13-23 1:33-43 1:53-63"
    assert setup(whole).tolls()["13"] == setup(whole).tolls()["43"] == 6
    split = setup(f"{whole} 2:33-34").tolls()
    assert (split["13"], split["43"], split["33"]) == (2, 3, 2)


def test_case_12_regions_do_not_wrap_around_the_board(setup: Setup) -> None:
    assert setup("1:03-04 1:63-64").tolls()["03"] == 2


def test_case_13_regions_run_under_assam(setup: Setup) -> None:
    rugs = "1:23-33 1:43-53"
    assert setup(rugs, assam="33S").tolls()["23"] == 4
    assert players(setup(rugs, assam="23E").play("S1")) == "26:15,34:15,30:15"


def test_case_14_half_covered_rug_counts_its_visible_half_and_reconnects(setup: Setup) -> None:
    assert setup("1:23-33 2:33-34").tolls()["23"] == 1
    assert setup("1:23-33 2:33-34 1:33-43").tolls()["23"] == 3


def test_case_15_two_colours_of_one_owner_are_separate_regions(setup: Setup) -> None:
    rugs = "2:33-34 3:43-44"
    opponent = setup(rugs, turn="0s", players=TWO_COLOURS).tolls()
    assert (opponent["33"], opponent["43"]) == (2, 2)
    owner = setup(rugs, turn="1s", players=TWO_COLOURS).tolls()
    assert (owner["33"], owner["43"]) == (0, 0)


def test_case_16_crossing_rugs_costs_nothing(setup: Setup) -> None:
    crossing = setup("1:13-23 2:33-32", assam="03E")
    assert players(crossing.play("S4")) == ONE_COLOUR
    stopping = setup("1:13-23 2:33-32", assam="03E")
    assert players(stopping.play("S3")) == "28:15,30:15,32:15"


# Five connected squares of colour 1 from (1, 3) to (5, 3): the sixth is covered.
REGION_OF_FIVE = "1:13-23 1:33-43 1:53-63 2:63-64"


def test_case_17_paying_the_last_dirham_keeps_the_player_in_the_game(setup: Setup) -> None:
    broke = setup(REGION_OF_FIVE, assam="03E", players="5:15,30:15,30:15").play("S1")
    assert (turn(broke), players(broke)) == ("0l", "0:15,35:15,30:15")
    broke.play("12-11")
    assert (turn(broke), players(broke)) == ("1s", "0:14,35:15,30:15")
    broke.play("R1", "15-16", "L1", "25-26")
    assert turn(broke) == "0s"


def test_case_18_owing_more_than_one_has_eliminates(setup: Setup) -> None:
    out = setup(REGION_OF_FIVE, assam="03E", players="3:15,30:15,30:15")
    board = out.text().split()[0]
    out.play("S1")
    assert out.text() == f"{board} 13E 1s x1:0,33:15,30:15 official"
    assert out.ranks() == [0, 0, 0]


def test_case_19_elimination_with_two_players_ends_the_game(setup: Setup) -> None:
    rugs = "2:13-23 2:33-43 2:53-63 3:63-64"
    over = setup(rugs, assam="03E", players="3:12+12:0,30:12+12:2").play("S1")
    assert (turn(over), players(over)) == ("-", "x1:0,33:12+12:2")
    assert over.legal() == set()
    assert (over.shares(), over.ranks()) == ([0, 1], [2, 1])
    assert over.scores() == [0, 33 + 7]


def test_case_20_turns_after_an_elimination_follow_the_rugs_left(setup: Setup) -> None:
    position = setup("0:13-23 0:33-43", assam="03E", turn="1s", players="500:10,2:11,500:11").play(
        "S1"
    )
    assert players(position) == "502:10,x1:0,500:11"
    movers = []
    while turn(position) != "-":
        movers.append(turn(position)[0])
        position.play("S1")
        position.play(min(position.legal()))
    assert "".join(movers) == "20" * 10 + "2"


def test_case_21_both_halves_of_one_rug_may_not_be_covered(setup: Setup) -> None:
    legal = setup("1:23-13", turn="0l").legal()
    assert "23-13" not in legal
    assert "23-22" in legal


def test_case_22_a_half_covered_rug_may_be_finished(setup: Setup) -> None:
    assert "23-13" in setup("1:23-13 2:13-12", turn="0l").legal()


def test_case_23_halves_of_two_rugs_of_one_colour_may_be_covered(setup: Setup) -> None:
    assert "23-13" in setup("1:23-24 1:13-14", turn="0l").legal()


def test_case_24_own_rugs_are_covered_whole_only_where_the_rules_say_so(setup: Setup) -> None:
    rug = "1:23-13"
    assert "23-13" not in setup(rug, turn="1l").legal()
    assert "23-13" in setup(rug, turn="1l", rule_set="official;cover_own=1").legal()
    assert "23-13" in setup(rug, turn="1l", rule_set="boardgamearena").legal()
    assert "23-13" not in setup(rug, turn="0l", rule_set="boardgamearena").legal()
    assert (
        "23-13" in setup(rug, turn="0l", players=TWO_COLOURS, rule_set="boardgamearena").legal()
    ), "the mover's other colour is his own"


@pytest.mark.parametrize("rule_set", ["official", "boardgamearena", "comp1110"])
def test_case_25_neutral_rugs_are_protected_free_and_worthless(setup: Setup, rule_set: str) -> None:
    out = {"players": "30:9,x1:0,30:9", "rule_set": rule_set}
    legal = setup("1:23-13", turn="0l", **out).legal()
    assert "23-13" not in legal
    assert {"23-22", "23-24"} <= legal
    assert setup("1:23-13", turn="0s", **out).tolls()["23"] == 0
    assert setup("1:23-13", turn="0s", **out).scores() == [30, 0, 30]
    landed = setup("1:23-13", assam="33W", turn="2s", **out).play("S1")
    assert (turn(landed), players(landed)) == ("2l", "30:9,x1:0,30:9")


def test_case_26_corner_has_four_placements_and_two_where_rugs_point_away(setup: Setup) -> None:
    assert setup(assam="00W", turn="0l").legal() == {"10-20", "10-11", "01-02", "01-11"}
    assert setup("1:10-20 2:01-02", assam="00W", turn="0l").legal() == {"10-11", "01-11"}


def test_case_27_four_whole_rugs_around_assam_leave_eight_placements(setup: Setup) -> None:
    assert len(setup(turn="0l").legal()) == 12
    assert len(setup("1:32-31 1:43-53 2:34-35 2:23-13", turn="0l").legal()) == 8


def test_case_28_elimination_with_the_last_rug_ends_the_game(setup: Setup) -> None:
    rugs = "1:13-23 1:33-43 2:00-01"
    over = setup(rugs, assam="03E", turn="2s", players="30:0,30:0,2:1").play("S1")
    assert (turn(over), players(over)) == ("-", "30:0,32:0,x1:0")
    assert over.scores() == [30, 36, 0]
    assert (over.shares(), over.ranks()) == ([0, 1, 0], [2, 1, 3])


def test_case_29_the_next_player_goes_on_from_where_assam_stopped(setup: Setup) -> None:
    after = setup(REGION_OF_FIVE, assam="12W", players="3:15,30:15,30:15").play("L1")
    assert (assam(after), turn(after)) == ("13S", "1s")
    assert assam(after.play("S2")) == "15S"


def test_case_30_equal_scores_go_to_more_dirhams_and_else_are_shared(setup: Setup) -> None:
    north = [f"0:{x}{y}-{x + 1}{y}" for y in (0, 1, 2) for x in (0, 2, 4)]
    south = [f"2:{x}{y}-{x + 1}{y}" for y in (4, 5, 6) for x in (0, 2, 4)]
    seventeen = " ".join([*north, *south[:7], "2:02-03"])  # the last rug covers half of one
    ended = {"turn": "-", "players": "23:0+0:-,24:0+0:-"}
    tie = setup(seventeen, **ended)
    assert (tie.scores(), tie.shares(), tie.ranks()) == ([40, 40], [0, 1], [2, 1])
    squares = setup(seventeen, **ended, rule_set="official;tie_break=squares")
    assert (squares.shares(), squares.ranks()) == ([1, 0], [1, 2])
    ended["players"] = "24:0+0:-,24:0+0:-"
    shared = setup(" ".join(north[:8] + south[:8]), **ended)
    assert (shared.scores(), shared.shares(), shared.ranks()) == ([40, 40], [0.5, 0.5], [1, 1])
