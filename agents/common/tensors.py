"""Reads and writes float32 tensors in the safetensors format.

The shipped networks have to play where only the core is installed, and the format is small: eight
bytes with the length of a JSON header, the header (name, dtype, shape and place of each tensor),
and the raw little-endian numbers.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Tensors = Mapping[str, NDArray[np.float32]]


def to_bytes(tensors: Tensors) -> bytes:
    """A safetensors file with these tensors."""
    header, parts, at = {}, [], 0
    for name, tensor in sorted(tensors.items()):
        data = np.ascontiguousarray(tensor, "<f4").tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [at, at + len(data)],
        }
        parts.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # the numbers begin at a multiple of 8
    return len(text).to_bytes(8, "little") + text + b"".join(parts)


def from_bytes(data: bytes) -> dict[str, NDArray[np.float32]]:
    """The tensors of a safetensors file.

    Raises:
        ValueError: The bytes make no sense, or hold something other than float32.
    """
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > len(data) - 8:
        raise ValueError("no safetensors file: its header is cut off")
    try:
        header = json.loads(data[8 : 8 + length])
    except (ValueError, RecursionError) as error:
        raise ValueError(f"no safetensors file: its header is no JSON: {error}") from error
    if not isinstance(header, dict):
        raise ValueError("no safetensors file: its header is no JSON object")
    numbers = data[8 + length :]
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape, (start, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
            counts = all(type(n) is int and 0 <= n < 2**63 for n in (*shape, start, end))
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"no safetensors file: bad entry {name!r}: {entry!r}") from error
        whole = counts and end <= len(numbers) and end - start == 4 * math.prod(shape)
        if dtype != "F32" or not whole:
            raise ValueError(f"tensor {name!r} is no whole float32 tensor: {entry!r}")
        tensors[name] = np.frombuffer(numbers[start:end], "<f4").reshape(shape).astype(np.float32)
    return tensors
