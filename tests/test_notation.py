"""Position, move and game texts: what is accepted round-trips, the rest is refused by name."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marrakech_env import notation, rules
from marrakech_env.notation import record as record_module
from marrakech_env.spec import RuleSet
from marrakech_env.state import LAY, OVER, STATE, STEER, WALK, States, as_states

EMPTY_ROW = "." * 14
EMPTY = "/".join([EMPTY_ROW] * 7)
START = f"{EMPTY} 33S 0s 30:12+12:0,30:12+12:3 official"


def with_square(cell: int, square: str, *more: tuple[int, str]) -> str:
    """A board text, empty but for some cells."""
    squares = [".."] * 49
    for place, what in ((cell, square), *more):
        squares[place] = what
    return "/".join("".join(squares[row : row + 7]) for row in range(0, 49, 7))


RUGS = with_square(8, "0>", (9, "0<"), (11, "1v"), (13, "1-"), (16, "2v"), (18, "1^"), (23, "2^"))

CANONICAL = [
    START,
    f"{EMPTY} 33S 0w 30:12+12:0,30:12+12:3 boardgamearena;steering=end",
    f"{EMPTY} 33S 0s 30:15,30:15 comp1110",
    f"{EMPTY} 06E 2l 30:15,0:0,30:15 official",
    f"{EMPTY} 60W 2s 30:12,x2:0,8191:100,x1:0 official",
    f"{RUGS} 34N 1l 0:1+0:0,60:0+12:3 official;cover_own=1;play_on=1;money=7;tie_break=squares",
    f"{EMPTY} 33S - 20:0+0:-,40:0+0:- official",
    f"{EMPTY} 33S - x1:0,60:12+12:2 official",
    f"{EMPTY} 33S - x2:0,60:3,x1:0 official",
    f"{EMPTY} 33S - x1:0,60:0 comp1110",
    f"{EMPTY} 33S 1s x1:0,60:12 comp1110",
    f"{EMPTY} 33S 0s 20:0+0:-,40:0+0:- official",  # over by the facts, but somebody is to move
    f"{EMPTY} 33S 1l x1:0,60:12+12:2 official",
    f"{EMPTY} 33S 0l 30:0,30:15,30:15 official",  # the board alone judges laying
    f"{EMPTY} 33S 0s 30:12+12:1,30:12+12:2 official;rugs=26;colours=alternate;facing=random",
]


@pytest.mark.parametrize("text", CANONICAL)
def test_position_texts_round_trip(text: str) -> None:
    states = notation.parse_position(text)
    assert states.shape == (1,)
    assert states.dtype == STATE
    as_states(states)
    assert notation.format_position(states) == text
    assert notation.format_position(states[0]) == text


def test_fields_of_the_state_are_those_of_the_text() -> None:
    state = notation.parse_position(f"{RUGS} 34N 1l x1:0,25:7,9:3 official")[0]
    assert (state["player"], state["phase"], state["num_players"]) == (1, LAY, 3)
    assert state["money"].tolist() == [0, 25, 9, 0]
    assert state["rugs"].tolist() == [0, 7, 3, 0]
    assert state["eliminated"].tolist() == [1, 0, 0, 0]
    assert (state["assam"], state["facing"]) == (31, 0)
    colours = rules.colours(notation.parse_position(f"{RUGS} 34N 1l x1:0,25:7,9:3 official"))[0]
    assert {cell: c for cell, c in enumerate(colours.tolist()) if c >= 0} == {
        8: 0, 9: 0, 11: 1, 13: 1, 16: 2, 18: 1, 23: 2,
    }  # fmt: skip


@pytest.mark.parametrize(("letter", "phase"), [("s", STEER), ("l", LAY), ("w", WALK)])
def test_phases_have_letters(letter: str, phase: int) -> None:
    text = f"{EMPTY} 33S 1{letter} 30:12,30:12 official;colours=single;steering=end"
    assert notation.parse_position(text)["phase"][0] == phase


def test_finished_games_name_player_0() -> None:
    state = notation.parse_position(f"{EMPTY} 33S - x1:0,60:12+12:2 official")[0]
    assert (state["player"], state["phase"]) == (0, OVER)


@pytest.mark.parametrize(
    ("read", "written"),
    [
        ("official;money=30", "official"),
        ("comp1110;facing=N;rugs=12;play_on=1", "comp1110;rugs=12;facing=N"),
        ("official;colours=single;cover_own=1", "official;colours=single;cover_own=1"),
    ],
)
def test_rules_are_written_canonically(read: str, written: str) -> None:
    text = f"{EMPTY} 33S 0s 30:12,30:12 "
    if "single" not in read and "comp" not in read:
        text = f"{EMPTY} 33S 0s 30:12+12:0,30:12+12:2 "
    assert notation.format_position(notation.parse_position(text + read)) == text + written


def test_colours_are_not_written_where_they_have_no_effect() -> None:
    text = f"{EMPTY} 33S 0s 30:15,30:15,30:15 "
    states = notation.parse_position(text + "boardgamearena;colours=shuffled")
    assert notation.format_position(states) == text + "boardgamearena"


ARABIC_ZERO = "\u0660"
ONE = "30:12,30:12,30:12"
TWO = "30:12+12:0,30:12+12:3"
REFUSED = [
    # field, text
    ("BOARD", f"{EMPTY[:-1]} 33S 0s {TWO} official"),
    ("BOARD", f"{EMPTY}/ 33S 0s {TWO} official"),
    ("BOARD", f"{EMPTY[15:]} 33S 0s {TWO} official"),
    ("BOARD", f"{EMPTY.replace('/', '|')} 33S 0s {TWO} official"),
    ("BOARD", f"{with_square(0, '4-')} 33S 0s {TWO} official"),
    ("BOARD", f"{with_square(0, '3-')} 33S 0s {ONE} official"),
    ("BOARD", f"{with_square(0, '2-')} 33S 0s 30:12,30:12 comp1110"),
    ("BOARD", f"{with_square(0, '0x')} 33S 0s {TWO} official"),
    ("BOARD", f"{with_square(0, '0.')} 33S 0s {TWO} official"),
    ("BOARD", f"{with_square(0, '.-')} 33S 0s {TWO} official"),
    ("BOARD", f"{with_square(0, '-0')} 33S 0s {TWO} official"),
    ("BOARD", f"{with_square(0, ARABIC_ZERO + '-')} 33S 0s {TWO} official"),
    ("BOARD", f"{with_square(0, '0>')} 33S 0s {TWO} official"),
    ("BOARD", f"{with_square(0, '0>', (1, '0-'))} 33S 0s {TWO} official"),
    ("BOARD", f"{with_square(0, '0>', (1, '1<'))} 33S 0s {TWO} official"),
    ("BOARD", f"{with_square(0, '0>', (1, '0>'), (2, '0<'))} 33S 0s {TWO} official"),
    ("BOARD", f"{with_square(1, '0<')} 33S 0s {TWO} official"),
    ("BOARD", f"{with_square(7, '0^')} 33S 0s {TWO} official"),
    ("BOARD", f"{with_square(0, '0v', (7, '0-'))} 33S 0s {TWO} official"),
    ("BOARD", f"{with_square(0, '0^')} 33S 0s {TWO} official"),  # off the board
    ("BOARD", f"{with_square(48, '0v')} 33S 0s {TWO} official"),
    ("BOARD", f"{with_square(6, '0>', (7, '0<'))} 33S 0s {TWO} official"),  # round the edge
    ("ASSAM", f"{EMPTY} 73S 0s {TWO} official"),
    ("ASSAM", f"{EMPTY} 37S 0s {TWO} official"),
    ("ASSAM", f"{EMPTY} 33s 0s {TWO} official"),
    ("ASSAM", f"{EMPTY} 33 0s {TWO} official"),
    ("ASSAM", f"{EMPTY} 3,3S 0s {TWO} official"),
    ("ASSAM", f"{EMPTY} 033S 0s {TWO} official"),
    ("TURN", f"{EMPTY} 33S 2s {TWO} official"),
    ("TURN", f"{EMPTY} 33S 00s {TWO} official"),
    ("TURN", f"{EMPTY} 33S 0S {TWO} official"),
    ("TURN", f"{EMPTY} 33S s {TWO} official"),
    ("TURN", f"{EMPTY} 33S 0- {TWO} official"),
    ("TURN", f"{EMPTY} 33S 0w {TWO} official"),
    ("TURN", f"{EMPTY} 33S 0x {TWO} official;steering=end"),
    ("TURN", f"{EMPTY} 33S -- {TWO} official"),
    ("TURN", f"{EMPTY} 33S - {TWO} official"),
    ("TURN", f"{EMPTY} 33S - 30:0+0:-,30:0+1:3 official"),
    ("TURN", f"{EMPTY} 33S - x1:0,30:12 comp1110"),  # he plays on
    ("TURN", f"{EMPTY} 33S - x1:0,30:0,30:1 official"),
    ("TURN", f"{EMPTY} 33S 0s x1:0,{TWO[11:]} official"),
    ("TURN", f"{EMPTY} 33S 0l x1:0,{TWO[11:]} official"),
    ("TURN", f"{EMPTY} 33S 0w x1:0,{TWO[11:]} official;steering=end"),
    ("TURN", f"{EMPTY} 33S 0l 30:0+0:-,30:12+12:3 official"),  # no next rug
    ("PLAYERS", f"{EMPTY} 33S 0s 30:12 official"),
    ("PLAYERS", f"{EMPTY} 33S 0s {ONE},{ONE} official"),
    ("PLAYERS", f"{EMPTY} 33S 0s {TWO}, official"),
    ("PLAYERS", f"{EMPTY} 33S 0s {ONE}, official"),
    ("PLAYERS", f"{EMPTY} 33S 0s {TWO} comp1110"),
    ("PLAYERS", f"{EMPTY} 33S 0s 30:12,30:12 official"),
    ("PLAYERS", f"{EMPTY} 33S 0s 30:12+12:0,30:12+12:2,30:12+12:2 official"),
    ("PLAYERS", f"{EMPTY} 33S 0s 030:12,30:12,30:12 official"),
    ("PLAYERS", f"{EMPTY} 33S 0s 30:012,30:12,30:12 official"),
    ("PLAYERS", f"{EMPTY} 33S 0s 00:12,30:12,30:12 official"),
    ("PLAYERS", f"{EMPTY} 33S 0s -1:12,30:12,30:12 official"),
    ("PLAYERS", f"{EMPTY} 33S 0s +1:12,30:12,30:12 official"),
    ("PLAYERS", f"{EMPTY} 33S 0s :12,30:12,30:12 official"),
    ("PLAYERS", f"{EMPTY} 33S 0s 8192:12,30:12,30:12 official"),
    ("PLAYERS", f"{EMPTY} 33S 0s 99999999:12,30:12,30:12 official"),
    ("PLAYERS", f"{EMPTY} 33S 0s 30:101,30:12,30:12 official"),
    ("PLAYERS", f"{EMPTY} 33S 0s 30:12+101:0,30:12+12:3 official"),
    ("PLAYERS", f"{EMPTY} 33S 0s 30:12+12:2,30:12+12:3 official"),  # not his colour
    ("PLAYERS", f"{EMPTY} 33S 0s 30:0+12:0,30:12+12:3 official"),  # none left of it
    ("PLAYERS", f"{EMPTY} 33S 0s 30:12+12:-,30:12+12:3 official"),
    ("PLAYERS", f"{EMPTY} 33S 0s 30:0+0:0,30:12+12:3 official"),
    ("PLAYERS", f"{EMPTY} 33S 0s 30:12+12,30:12+12:3 official"),
    ("PLAYERS", f"{EMPTY} 33S 1s x2:0,30:12,30:12 official"),
    ("PLAYERS", f"{EMPTY} 33S 1s x0:0,30:12,30:12 official"),
    ("PLAYERS", f"{EMPTY} 33S 1s x01:0,30:12,30:12 official"),
    ("PLAYERS", f"{EMPTY} 33S 1s x1:3,30:12,30:12 official"),
    ("PLAYERS", f"{EMPTY} 33S 1s x1:0+0:-,30:12+12:3 official"),
    ("PLAYERS", f"{EMPTY} 33S 1s x1:0,30:12,x1:0 official"),
    ("PLAYERS", f"{EMPTY} 33S 1s x1:0,30:12,x3:0 official"),
    ("PLAYERS", f"{EMPTY} 33S - x1:0,x2:0 official"),
    ("RULES", f"{EMPTY} 33S 0s {TWO} Official"),
    ("RULES", f"{EMPTY} 33S 0s {TWO} official;"),
    ("RULES", f"{EMPTY} 33S 0s {TWO} official\n"),
    ("RULES", f"{EMPTY} 33S 0s {TWO} "),
    ("RULES", f"{EMPTY} 33S 0s {TWO} official;cover=1"),
    ("RULES", f"{EMPTY} 33S 0s {TWO} official;cover_own=2"),
    ("RULES", f"{EMPTY} 33S 0s {TWO} official;cover_own"),
    ("RULES", f"{EMPTY} 33S 0s {TWO} official;money=030"),
    ("RULES", f"{EMPTY} 33S 0s {TWO} official;money=1001"),
    ("RULES", f"{EMPTY} 33S 0s {TWO} official;rugs=0"),
    ("RULES", f"{EMPTY} 33S 0s {TWO} official;rugs=25"),
    ("RULES", f"{EMPTY} 33S 0s {TWO} official;cover_own=1;cover_own=1"),
]


@pytest.mark.parametrize(("field", "text"), REFUSED)
def test_refusals_name_the_field(field: str, text: str) -> None:
    with pytest.raises(ValueError, match=rf"^{field}: "):
        notation.parse_position(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        START.rsplit(" ", 1)[0],
        START + " ",
        " " + START,
        START.replace(" 0s ", "  0s "),
        START.replace(" ", "\t"),
    ],
)
def test_refusals_of_other_shapes_name_all_fields(text: str) -> None:
    with pytest.raises(ValueError, match="BOARD ASSAM TURN PLAYERS RULES"):
        notation.parse_position(text)


@pytest.mark.parametrize("text", [None, 3, START.encode(), [START]])
def test_what_is_no_text_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match="must be a str"):
        notation.parse_position(text)
    with pytest.raises(ValueError, match="must be a str"):
        notation.parse_move(notation.parse_position(START), text)
    with pytest.raises(ValueError, match="must be a str"):
        notation.parse_game(text)


# ---------------------------------------------------------------------------------------- moves

LAYING = f"{EMPTY} 33S 0l 30:12+12:0,30:12+12:3 official"
LAST = f"{EMPTY} 33S 0l 30:1+0:0,30:12+12:3 official"
FORCED = f"{EMPTY} 33S 0l 30:1+5:0,30:12+12:3 official"
END = "official;colours=single;steering=end"


@pytest.mark.parametrize(
    ("position", "text", "action", "outcome"),
    [
        (START, "L3", 0, 3),
        (START, "S2", 1, 2),
        (START, "R4", 2, 4),
        (f"{EMPTY} 33S 0w 30:12,30:12 {END}", "S2", 1, 2),
        (f"{EMPTY} 33S 0s 30:12,30:12 {END}", "L", 0, -1),
        (f"{EMPTY} 33S 0s 30:12,30:12 {END}", "S", 1, -1),
        (LAYING, "34-35=1", 4, 1),
        (LAYING, "34-44=0", 3, 0),
        (LAYING, "43-42=0", 12, 0),
        (LAST, "34-35", 4, -1),
        (FORCED, "34-35=1", 4, 1),
        (f"{EMPTY} 33S 0l 30:12,30:12 comp1110", "32-22", 9, -1),
        (f"{EMPTY} 33S 0l 30:0,30:12 comp1110", "32-22", 9, -1),
    ],
)
def test_move_texts_round_trip(position: str, text: str, action: int, outcome: int) -> None:
    states = notation.parse_position(position)
    assert notation.parse_move(states, text) == (action, outcome)
    assert notation.format_move(states, action, outcome) == text
    assert notation.format_move(states[0], np.int64(action), np.int8(outcome)) == text


@pytest.mark.parametrize(
    ("position", "text", "named"),
    [
        (START, "", "not understood"),
        (START, "l3", "not understood"),
        (START, "L3 ", "not understood"),
        (START, "L33", "not understood"),
        (START, "34-35-36", "not understood"),
        (START, "L", "L1, L2, L3, L4"),
        (START, "L5", "L1, L2, L3, L4"),
        (START, "L0", "L1, L2, L3, L4"),
        (START, "34-35=1", "legal: L, S, R"),
        (f"{EMPTY} 33S 0w 30:12,30:12 {END}", "L2", "legal: S"),
        (f"{EMPTY} 33S 0s 30:12,30:12 {END}", "L2", "possible: L"),
        (LAYING, "L3", "34-35"),
        (LAYING, "35-34=1", "34-35"),  # the half beside Assam comes first
        (LAYING, "33-34=1", "34-35"),
        (LAYING, "34-35", "34-35=0, 34-35=1"),
        (LAYING, "34-35=2", "34-35=0, 34-35=1"),
        (FORCED, "34-35=0", "possible: 34-35=1"),
        (LAST, "34-35=0", "possible: 34-35"),
        (f"{EMPTY} 33S - 20:0+0:-,40:0+0:- official", "L3", "over"),
    ],
)
def test_refused_moves_name_the_legal_ones(position: str, text: str, named: str) -> None:
    with pytest.raises(ValueError, match=named) as caught:
        notation.parse_move(notation.parse_position(position), text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize(
    ("position", "action", "outcome"),
    [
        (START, 3, 1),
        (START, 0, -1),
        (START, 0, 5),
        (START, 0, 2.0),
        (START, 15, 1),
        (START, -1, 1),
        (START, None, 1),
        (START, True, 1),
        (LAYING, 0, 1),
        (LAYING, 4, -1),
        (LAYING, 4, 2),
        (LAYING, 4, None),
        (f"{EMPTY} 00N 0l {ONE} official", 4, -1),  # off the board
        (f"{EMPTY} 33S - 20:0+0:-,40:0+0:- official", 1, 1),
    ],
)
def test_impossible_moves_are_not_written(position: str, action: int, outcome: int) -> None:
    with pytest.raises(ValueError, match=r"action|move|outcome"):
        notation.format_move(notation.parse_position(position), action, outcome)


def test_legal_moves_lists_texts() -> None:
    assert notation.legal_moves(notation.parse_position(START)) == ["L", "S", "R"]
    corner = notation.parse_position(f"{EMPTY} 00S 0l {ONE} official")
    assert notation.legal_moves(corner) == ["01-11", "01-02", "10-20", "10-11"]
    over = notation.parse_position(f"{EMPTY} 33S - x1:0,60:12+12:2 official")
    assert notation.legal_moves(over) == []


# ---------------------------------------------------------------------------------------- games


@st.composite
def rule_sets(draw: st.DrawFn) -> RuleSet:
    num_players = draw(st.sampled_from([2, 3, 4]))
    options: dict[str, str | int] = {
        "rugs": 2 * draw(st.integers(1, 8)),
        "money": draw(st.sampled_from([0, 4, 30])),
        "colours": draw(st.sampled_from(["shuffled", "coin", "alternate", "single"])),
        "steering": draw(st.sampled_from(["start", "end"])),
        "play_on": draw(st.integers(0, 1)),
        "cover_own": draw(st.integers(0, 1)),
        "facing": draw(st.sampled_from(["S", "random"])),
    }
    preset = draw(st.sampled_from(["official", "boardgamearena", "comp1110"]))
    return RuleSet.preset(preset, num_players, **options)


def played(rule_set: RuleSet, seed: int) -> Iterator[tuple[States, int, int]]:
    """A random game: every state with the move made in it; the last one with (-1, -1)."""
    rng = np.random.default_rng(seed)
    states = np.zeros(1, STATE)
    rules.reset(states, rule_set, [rules.start_outcomes(rule_set, rng)])
    while states["phase"][0] != OVER:
        action = int(rng.choice(np.flatnonzero(rules.action_mask(states)[0])))
        outcome = int(rng.choice(rules.chance_outcomes(states, action)[0]))
        yield states.copy(), action, outcome
        rules.step(states, [action], [outcome])
    yield states.copy(), -1, -1


@settings(max_examples=30, deadline=None)
@given(rule_set=rule_sets(), seed=st.integers(0, 2**32 - 1))
def test_played_games_round_trip(rule_set: RuleSet, seed: int) -> None:
    game = list(played(rule_set, seed))
    for states, action, outcome in game:
        text = notation.format_position(states)
        assert notation.parse_position(text).tobytes() == states.tobytes(), text
        if action >= 0:
            move = notation.format_move(states, action, outcome)
            assert notation.parse_move(states, move) == (action, outcome)
    record = notation.GameRecord(
        start=notation.format_position(game[0][0]),
        moves=tuple((action, outcome) for _, action, outcome in game[:-1]),
        comments=(f"seed {seed}", ""),
    )
    text = notation.format_game(record)
    assert notation.parse_game(text) == record
    assert notation.parse_game(text.replace("\n", "\r\n")) == record
    assert [s.tobytes() for s in notation.replay(record)] == [s.tobytes() for s, _, _ in game]


def test_every_prefix_of_a_game_round_trips() -> None:
    game = list(played(RuleSet.preset("official", 3, rugs=2, steering="end"), seed=7))
    start = notation.format_position(game[0][0])
    moves = tuple((action, outcome) for _, action, outcome in game[:-1])
    for length in range(len(moves) + 1):
        record = notation.GameRecord(start, moves[:length])
        text = notation.format_game(record)
        assert notation.parse_game(text) == record
        assert text.endswith("result open\n") == (length < len(moves))


GAME = f"""\
# player 0 is greedy
start {EMPTY} 33S 0s 30:1+1:0,30:1+1:3 official;rugs=2
1 player 0: L2 52-51=1
2 player 1: S4 34-33=2
3 player 0: R1 42-41
4 player 1: L1 32-42
result 33,34 won by 1
"""


def test_a_game_reads_as_documented() -> None:
    assert notation.format_game(notation.parse_game(GAME)) == GAME
    assert "\n".join(f"    {line}" for line in GAME.splitlines()[2:]) in str(record_module.__doc__)


def canonical_game() -> list[str]:
    """The lines of a short game: comment, start, four turns, result."""
    rule_set = RuleSet.preset("official", 2, rugs=2)
    game = list(played(rule_set, seed=3))
    start = notation.format_position(game[0][0])
    moves = tuple((action, outcome) for _, action, outcome in game[:-1])
    return notation.format_game(notation.GameRecord(start, moves, ("short",))).splitlines()


@pytest.mark.parametrize(
    ("change", "line", "named"),
    [
        (lambda g: g[:1], 2, "ends here"),
        (lambda g: [g[0], *g[2:]], 2, "start POSITION"),
        (lambda g: [g[0], "start x", *g[2:]], 2, "BOARD ASSAM"),
        (lambda g: [*g[:2], g[2].replace("1 player", "2 player"), *g[3:]], 3, "1 player 0"),
        (lambda g: [*g[:2], g[2].replace("player 0", "player 1"), *g[3:]], 3, "1 player 0"),
        (lambda g: [*g[:2], g[2] + " ", *g[3:]], 3, "move ''"),
        (lambda g: [*g[:2], "", *g[2:]], 3, "1 player 0"),
        (lambda g: [*g[:2], g[2].rsplit(" ", 1)[0], *g[3:]], 4, "not finished"),
        (lambda g: [*g[:2], f"{g[2]} {g[3].split(': ')[1]}", *g[4:]], 3, "next line"),
        (lambda g: [*g[:2], f"1 player 0: L3 00-66={0}", *g[3:]], 3, "not legal"),
        (lambda g: [*g[:2], "1 player 0: L7", *g[3:]], 3, "not possible"),
        (lambda g: g[:-1], 7, "ends here"),
        (lambda g: [*g[:-1], "result open"], 7, "the game played says"),
        (lambda g: [*g[:-2], g[-1]], 6, "the game played says 'result open'"),
        (lambda g: [*g[:-1], "5 player 0: L3", g[-1]], 7, "over"),
        (lambda g: [*g, ""], 8, "behind the result"),
    ],
)
def test_wrong_games_are_refused_with_their_line(change, line: int, named: str) -> None:
    text = "\n".join(change(canonical_game())) + "\n"
    with pytest.raises(ValueError, match=named) as caught:
        notation.parse_game(text)
    assert str(caught.value).startswith(f"line {line}: ")


def test_a_record_that_cannot_be_played_is_not_written() -> None:
    with pytest.raises(ValueError, match="not legal"):
        notation.format_game(notation.GameRecord(START, ((7, 1),)))
    with pytest.raises(ValueError, match="not possible"):
        list(notation.replay(notation.GameRecord(START, ((0, 0),))))
    with pytest.raises(ValueError, match="single line"):
        notation.format_game(notation.GameRecord(START, comments=("two\nlines",)))
