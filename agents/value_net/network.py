"""The value network: one hidden layer beside linear skips, as a compiled kernel.

    acc   = bias + sum over inputs of input * first[input]       72 numbers
    out   = acc[64:] + relu(acc[:64]) @ second                   8 numbers
    margin of slot s = lead of slot s + 10 * out[s]              dirhams, within +-30
    win   of slot s  = softmax over the taken slots of out[4 + s]

`value_inputs` says what the inputs and the slots are. The skips are eight more columns of the first
layer, so that they cost nothing of their own. Inputs that all placements of a rug share are added
up once (`start`), and of the sparse ones only the rows of the squares that the rug covers change.

`margin` is the final score minus the best among the others, `win` the share of the win.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.spec import MAX_PLAYERS, NUM_CELLS, NUM_COLOURS
from marrakech_env.state import Int, Record

from .inputs import (
    ASSAM,
    NO_REGION,
    NOBODY,
    NOWHERE,
    NUM_DENSE,
    NUM_INPUTS,
    NUM_VARYING,
    SEEN,
    WINDOW,
    Real,
    squares_of,
    write_inputs,
    write_scores,
)
from .reply_inputs import write_replies

NUM_HIDDEN: Final = 64
NUM_OUTPUTS: Final = 2 * MAX_PLAYERS
NUM_SUMS: Final = NUM_HIDDEN + NUM_OUTPUTS
MAX_MARGIN: Final = 30.0
"""Margins are cut there; an eliminated player has the worst one, a last survivor the best."""
MARGIN_UNIT: Final = 10.0

NET: Final = np.dtype(
    [
        ("first", np.float32, (NUM_INPUTS, NUM_SUMS)),
        ("bias", np.float32, (NUM_SUMS,)),
        ("second", np.float32, (NUM_HIDDEN, NUM_OUTPUTS)),
        ("margin_weight", np.float32),
    ],
    align=True,
)
"""The weights. A move's worth is win + margin_weight * margin (in dirhams)."""
SUMS: Final = np.dtype(
    [
        ("base", np.float32, (NUM_SUMS,)),  # of the board as prepared
        ("before", np.float32, (NUM_VARYING,)),  # its varying inputs
        ("acc", np.float32, (NUM_SUMS,)),
        ("rows", np.uint64, (NUM_VARYING + 4,)),  # the inputs that a rug changes
        ("values", np.float32, (NUM_VARYING + 4,)),  # by how much
        ("out", np.float32, (NUM_OUTPUTS,)),
        ("margin", np.float32, (MAX_PLAYERS,)),  # by slot
        ("win", np.float32, (MAX_PLAYERS,)),  # by slot
    ],
    align=True,
)
"""What the network makes of the position in a WORK record."""

_WINDOW_SIZE = WINDOW * WINDOW


@kernel
def start(work: Record, tables: Record, net: Record, sums: Record) -> None:
    """Adds up what all placements share, into `sums.base`; after `value_board.look`.

    That is the whole board as it lies; `evaluate` adds what a rug changes.
    """
    base = sums.base
    for k in range(NUM_SUMS):
        base[k] = net.bias[k] + net.first[ASSAM + tables.assam[4 * work.assam + _facing(work)], k]
    write_inputs(work, tables)
    write_replies(work, tables)
    for i in range(NUM_DENSE):
        value = work.inputs[np.uint64(i)]
        if i < NUM_VARYING:
            sums.before[np.uint64(i)] = value
        if value != 0:
            for k in range(NUM_SUMS):
                base[k] += value * net.first[np.uint64(i), k]
    for region in range(work.num_regions):
        bits = work.bits[region]
        colour_slot = work.colour_slot[work.region_colour[region]]
        for cell in range(NUM_CELLS):
            if bits & game.cell_bit(cell):
                row = _window_row(work, tables, cell, colour_slot)
                if row >= 0:
                    for k in range(NUM_SUMS):
                        base[k] += net.first[np.uint64(row), k]


@kernel
def _facing(work: Record) -> Int:
    return work.look & 3


@kernel
def _window_row(work: Record, tables: Record, cell: Int, colour_slot: Int) -> Int:
    """The input of a coloured square, -1 where it is not seen."""
    seen = tables.seen[4 * work.assam + _facing(work), cell]
    return -1 if seen == NOWHERE else SEEN + _WINDOW_SIZE * colour_slot + seen


@kernel
def evaluate(
    work: Record, tables: Record, net: Record, sums: Record, first: Int, second: Int
) -> None:
    """Writes margin and win of all slots for the board as looked at.

    Args:
        work: After `look`, and after `lay` where a rug has been laid on it.
        tables: A record of `value_tables.TABLES`.
        net: The weights.
        sums: Prepared by `start`; gets the values.
        first: A cell of the rug laid, or -1 for none.
        second: Its other cell.
    """
    if work.turns == 0 or work.num_slots == 1:
        write_final(work, sums)
        return
    acc = sums.acc
    for k in range(NUM_SUMS):
        acc[k] = sums.base[k]
    if first >= 0:
        write_inputs(work, tables)
        write_replies(work, tables)
        _recolour(work, tables, net, sums, first)
        _recolour(work, tables, net, sums, second)
        _add_changes(work, net, sums)
    _write_outputs(net, sums)
    out = sums.out
    limit = np.float32(MAX_MARGIN)
    highest = out[MAX_PLAYERS]
    for slot in range(work.num_slots):
        margin = work.lead[slot] + np.float32(MARGIN_UNIT) * out[slot]
        sums.margin[slot] = max(min(margin, limit), -limit)
        highest = max(highest, out[MAX_PLAYERS + slot])
    total = np.float32(0)
    for slot in range(work.num_slots):
        sums.win[slot] = np.exp(out[MAX_PLAYERS + slot] - highest)
        total += sums.win[slot]
    for slot in range(work.num_slots):
        sums.win[slot] /= total


@kernel
def _add_changes(work: Record, net: Record, sums: Record) -> None:
    """Adds the rows of the inputs that the rug changes, four at a time to spare stores."""
    acc, rows, values = sums.acc, sums.rows, sums.values
    count = 0
    for i in range(NUM_VARYING):
        value = work.inputs[np.uint64(i)] - sums.before[np.uint64(i)]
        rows[np.uint64(count)] = i
        values[np.uint64(count)] = value
        count += value != 0
    for k in range(3):
        rows[np.uint64(count + k)] = 0
        values[np.uint64(count + k)] = 0
    for at in range(0, count, 4):
        row = (
            rows[np.uint64(at)],
            rows[np.uint64(at + 1)],
            rows[np.uint64(at + 2)],
            rows[np.uint64(at + 3)],
        )
        a, b = values[np.uint64(at)], values[np.uint64(at + 1)]
        c, d = values[np.uint64(at + 2)], values[np.uint64(at + 3)]
        for k in range(NUM_SUMS):
            acc[k] += (a * net.first[row[0], k] + b * net.first[row[1], k]) + (
                c * net.first[row[2], k] + d * net.first[row[3], k]
            )


@kernel
def _write_outputs(net: Record, sums: Record) -> None:
    """The second layer; eight local sums can stay in registers."""
    acc, second, out = sums.acc, net.second, sums.out
    a, b, c, d = acc[NUM_HIDDEN], acc[NUM_HIDDEN + 1], acc[NUM_HIDDEN + 2], acc[NUM_HIDDEN + 3]
    e, f, g, h = acc[NUM_HIDDEN + 4], acc[NUM_HIDDEN + 5], acc[NUM_HIDDEN + 6], acc[NUM_HIDDEN + 7]
    for k in range(np.uint64(NUM_HIDDEN)):
        value = max(acc[k], np.float32(0))
        a += value * second[k, 0]
        b += value * second[k, 1]
        c += value * second[k, 2]
        d += value * second[k, 3]
        e += value * second[k, 4]
        f += value * second[k, 5]
        g += value * second[k, 6]
        h += value * second[k, 7]
    out[0], out[1], out[2], out[3] = a, b, c, d
    out[4], out[5], out[6], out[7] = e, f, g, h


@kernel
def _recolour(work: Record, tables: Record, net: Record, sums: Record, cell: Int) -> None:
    """Corrects the sums for a square that the rug of slot 0 covers."""
    region = work.region_of[cell]
    acc = sums.acc
    if region != NO_REGION:
        colour = work.region_colour[region]
        if colour == work.laid:
            return
        row = _window_row(work, tables, cell, work.colour_slot[colour])
        if row >= 0:
            for k in range(NUM_SUMS):
                acc[k] -= net.first[np.uint64(row), k]
    row = _window_row(work, tables, cell, work.colour_slot[work.laid])
    if row >= 0:
        for k in range(NUM_SUMS):
            acc[k] += net.first[np.uint64(row), k]


@kernel
def write_final(work: Record, sums: Record) -> None:
    """Writes margin and win of all slots where the game is over on the board as looked at."""
    write_scores(work)
    limit = np.float32(MAX_MARGIN)
    best, winners = -1.0, 0
    for slot in range(work.num_slots):
        if work.num_slots == 1:
            sums.margin[slot] = limit
        else:
            sums.margin[slot] = max(min(work.lead[slot], limit), -limit)
        standing = _standing(work, slot)
        if standing > best:
            best, winners = standing, 1
        elif standing == best:
            winners += 1
    for slot in range(work.num_slots):
        won = _standing(work, slot) == best
        sums.win[slot] = np.float32(1) / np.float32(winners) if won else np.float32(0)


@kernel
def _standing(work: Record, slot: Int) -> Real:
    """Orders the slots by score, then by the tie break."""
    tie = squares_of(work, slot) if work.by_squares else work.money[slot]
    return np.float64(work.score[slot]) * 65536 + tie


@kernel
def write_row(work: Record, tables: Record, row: NDArray[np.float32]) -> None:
    """Writes all inputs of the board as looked at, for learning.

    Args:
        work: After `evaluate`.
        tables: A record of `value_tables.TABLES`.
        row: float32 (NUM_INPUTS,), overwritten.
    """
    for i in range(NUM_DENSE):
        row[i] = work.inputs[i]
    for i in range(NUM_DENSE, NUM_INPUTS):
        row[i] = 0
    row[ASSAM + tables.assam[4 * work.assam + _facing(work)]] = 1
    for colour in range(NUM_COLOURS):
        if work.slot_of_colour[colour] == NOBODY:
            continue
        for cell in range(NUM_CELLS):
            if work.boards[colour] & game.cell_bit(cell):
                seen = _window_row(work, tables, cell, work.colour_slot[colour])
                if seen >= 0:
                    row[seen] = 1


def empty_net(margin_weight: float) -> NDArray[np.void]:
    """NET (1,) with all weights 0: a position is worth what the score says."""
    net = np.zeros(1, NET)
    net["margin_weight"] = margin_weight
    return net
