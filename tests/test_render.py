"""Pictures show the state, agree with each other, and need no display; Pillow comes in late."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from marrakech_env import render, rules
from marrakech_env.notation import parse_position
from marrakech_env.render import layout
from marrakech_env.render.facts import seats, standing, status
from marrakech_env.render.mode import picture
from marrakech_env.render.scene import scene

EMPTY = "/".join(["." * 14] * 7)
MIDDLE = (
    "....3v....0>0</..0v3^2v....../..0^1-2^....../..2>2<..1v..../........1^0>0</..3>3<......../"
    "......2>2<.... 33E 1l 24:8+9:1,36:9+8:2 boardgamearena;steering=end"
)
FOUR = (
    "2-......2>2<../0>0<1v..1v..../0>0<1^2-1^0>0</1>1<1v1-1v0v1-/2v0-1^..1^0^1v/2^1>1<0-0-0-1^/"
    "....1>1<2-0-2- 34W 1l 42:3,48:3,x1:0,30:7 comp1110"
)
POSITIONS = [
    f"{EMPTY} 33S 0s 30:12+12:0,30:12+12:3 official",
    f"{EMPTY} 33S 0w 30:12,30:12 official;colours=single;steering=end",
    f"{EMPTY} 33S 0s 30:0+0:-,30:12+12:3 official;steering=end",
    f"{EMPTY} 06N - x1:0,60:12+12:2 official",
    MIDDLE,
    FOUR,
]
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize(
    ("position", "line"),
    [
        (POSITIONS[0], "Player 0 to steer and roll"),
        (POSITIONS[1], "Player 0 to roll, Assam walks straight on"),
        (POSITIONS[2], "Player 0 to steer for the next walk"),
        (POSITIONS[3], "Game over: player 1 wins"),
        (MIDDLE, "Player 1 to lay a rug of colour 2"),
        (f"{EMPTY} 33S - 30:0,30:0 comp1110", "Game over: players 0 and 1 share the win"),
    ],
)
def test_every_picture_says_who_is_to_do_what(position: str, line: str) -> None:
    state = parse_position(position)
    assert status(state) == line
    assert line in render.render_ansi(state)
    assert line in render.render_svg(state)


def test_the_table_holds_the_facts() -> None:
    states = parse_position(FOUR)
    table = seats(states[0])
    assert [seat.score for seat in table] == rules.scores(states)[0].tolist()
    assert [seat.money for seat in table] == [42, 48, 0, 30]
    assert [seat.squares for seat in table] == [13, 18, 8, 0]
    assert [seat.to_move for seat in table] == [False, True, False, False]
    assert [standing(seat) for seat in table] == ["", "", "out (1st)", ""]
    assert [pile.left for seat in table for pile in seat.piles] == [3, 3, 0, 7]
    two = seats(parse_position(MIDDLE))
    assert [(p.colour, p.left, p.is_next) for seat in two for p in seat.piles] == [
        (0, 8, False),
        (1, 9, True),
        (2, 9, True),
        (3, 8, False),
    ]


def test_a_finished_game_shows_its_winners_and_no_mover() -> None:
    shared = seats(parse_position(f"{EMPTY} 33S - 30:0,30:0 comp1110"))
    assert [standing(seat) for seat in shared] == ["shares the win"] * 2
    won = seats(parse_position(f"{EMPTY} 33S - 31:0,30:0 comp1110"))
    assert [standing(seat) for seat in won] == ["wins", ""]
    assert not any(seat.to_move for seat in won)


ANSI = """\
        ╭─────╮     ╭─────╮     ╭─────╮     ╭────╮
        0     1     2     3     4     5     6    │
     ┌─────┬─────┬─────┬─────┬─────┬───────────┐ │   Player 1 to lay a rug of colour 2
 ╭ 0 │     │     │  3  │     │     │  0     0  │ ╯   Rules: boardgamearena;steering=end
 │   ├─────┼─────┤     ├─────┼─────┼─────┬─────┤
 ╰ 1 │     │  0  │  3  │  2  │     │     │     │ ╮     Player 0  24 dirhams + 9 squares = 33
     ├─────┤     ├─────┤     ├─────┼─────┼─────┤ │               rugs: 8 of colour 0, 9 of colour 1 (next)
 ╭ 2 │     │  0  │  1  │  2  │     │     │     │ ╯   ▶ Player 1  36 dirhams + 10 squares = 46
 │   ├─────┼─────┴─────┼─────┼─────┼─────┼─────┤                 rugs: 9 of colour 2 (next), 8 of colour 3
 ╰ 3 │     │  2     2  │ (▶) │  1  │     │     │ ╮
     ├─────┼─────┬─────┼─────┤     ├─────┴─────┤ │
 ╭ 4 │     │     │     │     │  1  │  0     0  │ ╯
 │   ├─────┼─────┴─────┼─────┼─────┼─────┬─────┤
 ╰ 5 │     │  3     3  │     │     │     │     │ ╮
     ├─────┼─────┬─────┼─────┴─────┼─────┼─────┤ │
 ╭ 6 │     │     │     │  2     2  │     │     │ ╯
 │   └─────┴─────┴─────┴───────────┴─────┴─────┘
 ╰──────╯     ╰─────╯     ╰─────╯     ╰─────╯"""  # noqa: E501 - the widest line of the picture


def test_ansi_draws_the_board() -> None:
    assert render.render_ansi(parse_position(MIDDLE)) == ANSI


def test_ansi_shows_the_rug_under_assam() -> None:
    state = parse_position(MIDDLE.replace(" 33E ", " 43N "))
    assert "1(▲)" in render.render_ansi(state)


@pytest.mark.parametrize("position", POSITIONS)
def test_ansi_colour_changes_no_character(position: str) -> None:
    state = parse_position(position)
    coloured = render.render_ansi(state, colour=True)
    assert ESCAPES.sub("", coloured) == render.render_ansi(state)
    # Every line leaves the terminal as it found it.
    for line in coloured.splitlines():
        codes = ESCAPES.findall(line)
        assert not codes or codes[-1] == "\x1b[0m"
    assert ("\x1b[" in coloured) == bool(parse_position(position)["colour_boards"].any())


@pytest.mark.parametrize("position", POSITIONS)
def test_svg_is_a_self_contained_document(position: str) -> None:
    text = render.render_svg(parse_position(position))
    root = ET.fromstring(text)
    names = {element.tag.rsplit("}", 1)[-1] for element in root.iter()}
    assert names <= {"svg", "title", "desc", "rect", "circle", "polygon", "polyline", "text"}
    assert "href" not in text
    described = root.find("{http://www.w3.org/2000/svg}desc")
    assert described is not None
    assert described.text == position


def test_svg_counts_whole_rugs_and_halves() -> None:
    grounds = [palette.ground for palette in layout.RUGS]
    rugs = [
        (grounds.index(shape.fill), round(shape.width), round(shape.height))
        for shape in scene(parse_position(MIDDLE))
        if isinstance(shape, layout.Rect)
        and shape.fill in grounds
        and shape.left < layout.PANEL_LEFT
    ]
    half, whole = 62, 134
    assert sorted(rugs) == [
        (0, half, whole),
        (0, whole, half),
        (0, whole, half),
        (1, half, half),
        (1, half, whole),
        (2, half, whole),
        (2, whole, half),
        (2, whole, half),
        (3, half, whole),
        (3, whole, half),
    ]


@pytest.mark.parametrize("position", POSITIONS)
def test_rgb_array_has_the_size_of_the_svg(position: str) -> None:
    state = parse_position(position)
    array = render.render_rgb_array(state)
    assert array.shape == (layout.HEIGHT, layout.WIDTH, 3)
    assert array.dtype == np.uint8
    assert (array == render.render_rgb_array(state[0])).all()


def test_rgb_array_shows_the_colours_of_the_rugs() -> None:
    states = parse_position(MIDDLE)
    array = render.render_rgb_array(states)
    for cell, colour in enumerate(rules.colours(states)[0].tolist()):
        x, y = layout.cell_centre(cell)
        pixel = array[round(y) - 28, round(x)]  # between both borders
        wanted = layout.SAND if colour < 0 else layout.RUGS[colour].ground
        if colour < 0 and states["assam"][0] == cell:
            continue
        difference = pixel.astype(int) - [int(wanted[i : i + 2], 16) for i in (1, 3, 5)]
        assert np.abs(difference).max() < 24, (cell, colour)


def test_assam_looks_different_in_every_facing() -> None:
    pictures = {
        render.render_rgb_array(parse_position(MIDDLE.replace("33E", f"33{facing}"))).tobytes()
        for facing in "NESW"
    }
    assert len(pictures) == 4


def test_long_rules_fit_the_panel() -> None:
    text = (
        f"{EMPTY} 33S 0w 30:12,30:12 comp1110;rugs=12;cover_own=1;play_on=0;steering=end;money=999;"
        "tie_break=squares;facing=random"
    )
    shapes = scene(parse_position(text))
    lines = [s for s in shapes if isinstance(s, layout.Text) and s.position[0] > 690]
    assert max(len(line.text) for line in lines) < 45


def test_importing_the_package_loads_no_pillow() -> None:
    code = (
        "import sys, marrakech_env, marrakech_env.render as r; print('PIL' in sys.modules); "
        "r.render_rgb_array; print('PIL' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_unknown_names_are_unknown() -> None:
    with pytest.raises(AttributeError, match="no attribute 'png'"):
        render.png  # noqa: B018 - asking for it is the test


@pytest.mark.parametrize("name", ["render_ansi", "render_svg", "render_rgb_array"])
def test_one_state_is_wanted(name: str) -> None:
    two = np.repeat(parse_position(MIDDLE), 2)
    with pytest.raises(ValueError, match="one state"):
        getattr(render, name)(two)


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437"])
def test_a_board_is_shown_on_any_terminal(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding, write_through=True))
    for position in POSITIONS:
        state = parse_position(position)[0]
        assert picture(state, "human") is None
        lines = raw.getvalue().decode(encoding).splitlines()
        drawn = render.render_ansi(state).splitlines()
        assert list(map(len, lines[-len(drawn) :])) == list(map(len, drawn))
    assert "\\u" not in raw.getvalue().decode(encoding)
