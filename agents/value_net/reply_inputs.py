"""What the next turn may do to a position: the inputs of the value network that look two walks on.

For each steering of the next walker (slot 1) these are means over his roll: what his rug can cover,
cut and join where he lands, and what the walk after that will cost, see `value_inputs.REPLY_FACTS`.
The same numbers stand once more for the steering that he is likely to choose. The expectimax agent
looks at the same things, see `walks` and `evaluation`; here a rug is not on a `State` but on a
record of WORK.

Legend: see `value_inputs`; a *landing* is one of the 12 squares where the next walk can end.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import find_swings, largest_swing, lowest_cell
from marrakech_env.spec import BOARD_SIZE, MAX_PLAYERS, NUM_CELLS, NUM_COLOURS
from marrakech_env.state import Bits, Int, Record
from marrakech_env.tables import BESIDE, CORNERS, EDGES, NEAR

from ..heuristic.opponent_model import RUIN_COST, WANT_CUT, WANT_GROWTH, WANT_SECOND, WANT_SWING
from .inputs import (
    CHANCE,
    LIKELY,
    NOBODY,
    NUM_FACES,
    NUM_REPLY_FACTS,
    NUM_STEERINGS,
    REPLY,
    REPLY_FACTS,
    SHAPE,
    Real,
)

_RUIN_COST: Final = np.float32(RUIN_COST)
_WANT_SECOND, _WANT_SWING = np.float32(WANT_SECOND), np.float32(WANT_SWING)
_WANT_GROWTH, _WANT_CUT = np.float32(WANT_GROWTH), np.float32(WANT_CUT)
"""The same as in `walks`, in the precision of the inputs."""
_starts = np.cumsum([0] + [count for _, count, _, _ in REPLY_FACTS]).tolist()
(
    _DUE,
    _RUIN,
    _SWING,
    _GROWTH,
    _WORST_CUT,
    _SECOND_DUE,
    _SECOND_RUIN,
    _INCOME,
    _COVER,
    _CUT,
    _SECOND_INCOME,
) = _starts[:-1]
_SCALE: Final = np.concatenate(
    [np.full(count, factor, np.float32) for _, count, factor, _ in REPLY_FACTS]
)

_ONE, _ROW = np.uint64(1), np.uint64(BOARD_SIZE)
_TENTH, _HALF, _FIFTH = np.float32(0.1), np.float32(0.5), np.float32(0.2)


@kernel
def write_replies(work: Record, tables: Record) -> None:
    """Writes the inputs REPLY, LIKELY and SHAPE of the board as looked at; they must be 0."""
    _write_shape(work)
    if work.num_slots < 2:
        return
    x, reply = work.inputs, work.reply
    theirs = np.uint64(0)
    own = np.uint64(0)
    for colour in range(NUM_COLOURS):
        slot = work.slot_of_colour[colour]
        if slot == 1:
            own |= work.visible[colour]
        elif slot != NOBODY:
            theirs |= work.visible[colour]
    follower = work.follower
    find_swings(own, theirs, work.free_east, work.free_south, work.swings)
    if follower != NOBODY:
        _write_bills(work, follower)
    for k in range(NUM_STEERINGS):
        for fact in range(NUM_REPLY_FACTS):
            reply[k, fact] = 0
    walks = 1 if work.straight_on else NUM_STEERINGS
    for steering in range(walks):
        for face in range(NUM_FACES):
            k = NUM_FACES * steering + face
            _add_landing(work, tables, steering, k, CHANCE[face], theirs)
    best, least = 0, np.float32(np.inf)
    for steering in range(walks):
        facts = reply[steering]
        wants = _WANT_SWING * facts[_SWING] + _WANT_GROWTH * facts[_GROWTH]
        wants += _WANT_CUT * facts[_WORST_CUT]
        if follower != NOBODY:
            wants += _WANT_SECOND * facts[_SECOND_INCOME + 1]
        cost = facts[_DUE] + _RUIN_COST * facts[_RUIN] - wants
        if cost < least:
            best, least = steering, cost
    for steering in range(NUM_STEERINGS):
        at = REPLY + NUM_REPLY_FACTS * steering
        of = 0 if work.straight_on else steering
        for fact in range(NUM_REPLY_FACTS):
            x[at + fact] = reply[of, fact] * _SCALE[fact]
    for fact in range(NUM_REPLY_FACTS):
        x[LIKELY + fact] = reply[best, fact] * _SCALE[fact]


@kernel
def _write_shape(work: Record) -> None:
    """Writes squares on the edge, in corners and whole rugs by colour slot, and the bitboards."""
    x, rug = work.inputs, work.rug
    east = (work.links_east & ~(rug | rug >> _ONE)) | (rug & rug >> _ONE)
    south = (work.links_south & ~(rug | rug >> _ROW)) | (rug & rug >> _ROW)
    work.free_east = game.NOT_EAST_EDGE & ~east
    work.free_south = ~south
    for colour in range(NUM_COLOURS):
        visible = work.boards[colour] & ~rug
        if colour == work.laid:
            visible |= rug
        work.visible[colour] = visible
        if work.slot_of_colour[colour] != NOBODY:
            slot = work.colour_slot[colour]
            x[SHAPE + slot] = np.float32(game.popcount(visible & EDGES)) * _TENTH
            x[SHAPE + 4 + slot] = np.float32(game.popcount(visible & CORNERS)) * _HALF
            x[SHAPE + 8 + slot] = np.float32(game.popcount(visible & (east | south))) * _FIFTH


@kernel
def _write_bills(work: Record, payer: Int) -> None:
    """Writes what stopping on each cell costs a player who wants to stay in the game."""
    now, money = work.now, work.money[payer]
    for cell in range(NUM_CELLS):
        size = now.size[cell]
        bill = size if size <= money else money + _RUIN_COST
        work.bills[cell] = np.float32(0) if now.slot[cell] == payer else bill


@kernel
def _add_landing(
    work: Record, tables: Record, steering: Int, k: Int, chance: Real, theirs: Bits
) -> None:
    """Adds one landing to the facts of a steering."""
    now, facts = work.now, work.reply[steering]
    cell = np.uint64(tables.ends[work.look, k])
    slot, size, money = now.slot[cell], now.size[cell], work.money[1]
    if slot != NOBODY and slot != 1:
        toll = min(size, money)
        facts[_DUE] += chance * toll
        facts[_INCOME + slot] += chance * toll
        if size > money:
            facts[_RUIN] += chance
    facts[_SWING] += chance * np.float32(max(1, largest_swing(cell, work.swings)))
    near = NEAR[cell] & work.visible[work.reply_colour]
    most = np.float32(0)
    while near:
        most = max(most, now.size[np.uint64(lowest_cell(near))])
        near &= near - _ONE
    facts[_GROWTH] += chance * most
    beside = BESIDE[cell] & theirs
    if beside:
        cut = work.beside
        for other in range(MAX_PLAYERS):
            cut[other] = 0
        most = np.float32(0)
        while beside:
            square = np.uint64(lowest_cell(beside))
            beside &= beside - _ONE
            cut[now.slot[square]] = max(cut[now.slot[square]], now.size[square])
            most = max(most, now.size[square])
        facts[_WORST_CUT] += chance * most
        for other in range(MAX_PLAYERS):
            if cut[other] > 0:
                facts[_COVER + other] += chance
                facts[_CUT + other] += chance * cut[other]
    if work.follower != NOBODY:
        _add_second(work, tables, np.uint64(tables.landing[work.look, k]), chance, facts)


@kernel
def _add_second(work: Record, tables: Record, heading: Int, chance: Real, facts: Record) -> None:
    """Adds the follower's walk from a heading, by his cheapest way (dearest if steered for him)."""
    now, bills, follower = work.now, work.bills, work.follower
    ends = tables.ends[heading]
    best, least = 0, np.float32(np.inf)
    for steering in range(NUM_STEERINGS):
        cost = np.float32(0)
        for face in range(NUM_FACES):
            cost += CHANCE[face] * bills[np.uint64(ends[NUM_FACES * steering + face])]
        if work.straight_on:
            cost = -cost
        if cost < least:
            best, least = steering, cost
    money = work.money[follower]
    for face in range(NUM_FACES):
        cell = np.uint64(ends[NUM_FACES * best + face])
        slot = now.slot[cell]
        if slot != NOBODY and slot != follower:
            part = chance * CHANCE[face]
            toll = part * min(now.size[cell], money)
            facts[_SECOND_DUE] += toll
            facts[_SECOND_INCOME + slot] += toll
            if now.size[cell] > money:
                facts[_SECOND_RUIN] += part
