"""Kernels that store many values at once, where one at a time would cost most of the work."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from llvmlite import ir
from numba import extending, types
from numba.core.cgutils import for_range
from numpy.typing import NDArray

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.spec import NUM_CELLS
from marrakech_env.state import Bits, Int
from marrakech_env.tables import SHOWN_CELL

_SPREAD: Final = np.array(
    [sum((bits >> k & 1) << 8 * k for k in range(8)) for bits in range(256)], np.uint64
)
"""uint64 (256,): eight bits, each as a byte of 0 or 1, the lowest first."""
_LAST_EIGHT: Final = NUM_ACTIONS - 8


@kernel
def put_eight(out: NDArray[np.uint8], at: Bits, values: Bits) -> None:
    """Writes the bytes of a number, the lowest first; the compiler makes it one store.

    `at` is unsigned: Numba would ask of a signed index whether it counts from the end.
    """
    for k in range(8):
        out[at + np.uint64(k)] = np.uint8(values >> np.uint64(8 * k))


@kernel
def bytes_of(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """A mask (B, 15) as `put_mask` takes it: the same memory."""
    return mask.reshape(-1).view(np.uint8)


@kernel
def put_mask(out: NDArray[np.uint8], game: Int, legal: Bits) -> None:
    """Writes legal actions, given as 15 bits, into the row of a game: two stores, not fifteen."""
    at = np.uint64(game) * np.uint64(NUM_ACTIONS)
    put_eight(out, at, _SPREAD[np.uint64(legal) & np.uint64(255)])
    at += np.uint64(_LAST_EIGHT)
    put_eight(out, at, _SPREAD[np.uint64(legal) >> np.uint64(_LAST_EIGHT)])


# Vectors of 32 numbers: Numba has none, so the functions below say it to LLVM themselves, which
# makes of them what the machine has. The 49 squares of a plane are two vectors that overlap.
_WIDTH: Final = 32
_STARTS: Final = (0, NUM_CELLS - _WIDTH)
_BYTE, _INDEX, _WORD = ir.IntType(8), ir.IntType(32), ir.IntType(64)
_LANE: Final = 16
"""Bytes of a vector that machines permute among themselves at the least cost."""

_intrinsic: Any = extending.intrinsic  # mypy takes it for a plain function of one argument more


def _vector(values: Any, kind: ir.IntType) -> ir.Constant:
    numbers = [ir.Constant(kind, int(value)) for value in values]
    return ir.Constant(ir.VectorType(kind, len(numbers)), numbers)


def _repeated(builder: Any, value: Any, length: int) -> Any:
    """A vector that holds the same value throughout."""
    vector: Any = ir.Constant(ir.VectorType(value.type, length), ir.Undefined)
    vector = builder.insert_element(vector, value, ir.Constant(_INDEX, 0))
    return builder.shuffle_vector(vector, vector, _vector([0] * length, _INDEX))


def _store(context: Any, builder: Any, out: Any, array: Any, at: Any, value: Any) -> None:
    """Stores a number or a vector of them at an index of an array."""
    data = context.make_array(out)(context, builder, array).data
    place = builder.bitcast(builder.gep(data, [at]), value.type.as_pointer())
    builder.store(value, place, align=out.dtype.bitwidth // 8)


@_intrinsic
def put_boards(_: Any, out: Any, at: Any, boards: Any, count: Any, facing: Any) -> Any:
    """Writes bitboards, 49 numbers of 0 or 1 each, turned so that a facing is up.

    Each byte of a vector gets that byte of the board in which its square is, all other bits are
    cleared, and what is not 0 becomes 1; so turning a board costs nothing.

    Args:
        out: uint8 or float32 (N,), changed in place.
        at: Index of the first number.
        boards: uint64 (M,).
        count: How many of them.
        facing: 0..3.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, at, boards, count, facing = arguments
        kind = context.get_value_type(out.dtype)
        convert = builder.zext if isinstance(kind, ir.IntType) else builder.uitofp
        source = context.make_array(signature.args[2])(context, builder, boards).data
        end = builder.append_basic_block()
        switch = builder.switch(facing, end)
        for up, cells in enumerate(SHOWN_CELL):
            block = builder.append_basic_block()
            switch.add_case(ir.Constant(facing.type, up), block)
            builder.position_at_end(block)
            with for_range(builder, count) as loop:
                board = builder.load(builder.gep(source, [loop.index]))
                board = _repeated(builder, board, _WIDTH // 8)
                board = builder.bitcast(board, ir.VectorType(_BYTE, _WIDTH))
                first = builder.add(at, builder.mul(loop.index, ir.Constant(_WORD, NUM_CELLS)))
                for start in _STARTS:
                    shown = cells[start : start + _WIDTH]
                    bytes_ = [i // _LANE * _LANE + cell // 8 for i, cell in enumerate(shown)]
                    part = builder.shuffle_vector(board, board, _vector(bytes_, _INDEX))
                    part = builder.and_(part, _vector(1 << shown % 8, _BYTE))
                    part = builder.icmp_unsigned("!=", part, _vector([0] * _WIDTH, _BYTE))
                    part = convert(part, ir.VectorType(kind, _WIDTH))
                    to = builder.add(first, ir.Constant(_WORD, start))
                    _store(context, builder, out, array, to, part)
            builder.branch(end)
        builder.position_at_end(end)
        return context.get_dummy_value()

    return types.void(out, types.uint64, boards, types.int64, types.int64), generate


@_intrinsic
def put_number(_: Any, out: Any, at: Any, value: Any) -> Any:
    """Writes a number: 49 times into uint8, where 255 stands for more as well; once into float32.

    Args:
        out: uint8 or float32 (N,), changed in place.
        at: Index of the first.
        value: A whole number of at least 0.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array, at, value = arguments
        kind = context.get_value_type(out.dtype)
        if isinstance(kind, ir.IntType):
            most = ir.Constant(value.type, 255)
            value = builder.select(builder.icmp_signed("<", value, most), value, most)
            plane = _repeated(builder, builder.trunc(value, kind), _WIDTH)
            for start in _STARTS:
                to = builder.add(at, ir.Constant(_WORD, start))
                _store(context, builder, out, array, to, plane)
        else:
            _store(context, builder, out, array, at, builder.sitofp(value, kind))
        return context.get_dummy_value()

    return types.void(out, types.uint64, types.int64), generate
