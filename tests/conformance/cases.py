"""The field cases that give a transposed convolution's data and result as numbers.

Each is named after a case in public issue trackers, with its numbers as they were worked out there:
never from our own output. Single channels are written flat.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from convdsl import ops

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Case:
    """`y` is the result of a transposed convolution of `x` with `w` and these attributes."""

    name: str
    x: Any
    w: Any
    y: Any
    b: Any = None
    attributes: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return self.name


def case(name: str, x: Any, w: Any, y: Any, b: Any = None, **attributes: Any) -> Case:
    return Case(name, x, w, y, b, tuple(attributes.items()))


def f32(values: Any, rank: int) -> Array:
    """The numbers as an array of this rank, with axes of length 1 in front."""
    array = np.array(values, np.float32)
    return array.reshape((1,) * (rank - array.ndim) + array.shape)


def bias(values: Any) -> Array | None:
    return None if values is None else f32(values, 1)


def stamp(x: Any, w: Any, b: Any = None, **attributes: Any) -> list[Any]:
    """The transposed convolution of numbers: a flat list, or one a channel if there are several."""
    y = ops.conv_transpose1d(f32(x, 3), f32(w, 3), bias(b), **attributes)
    result: list[Any] = y[0, 0].tolist() if y.shape[1] == 1 else y[0].tolist()
    return result


CASES = [
    case("F01", [[3], [5]], [[[7]], [[11]]], [[21], [55]], groups=2),
    case(
        "F03", [[1, 2], [3, 4], [5, 6], [7, 8]],
        [[[1, 10], [2, 20]], [[3, 30], [4, 40]], [[5, 50], [6, 60]], [[7, 70], [8, 80]]],
        [[10, 100, 14, 140], [14, 140, 20, 200], [74, 740, 86, 860], [86, 860, 100, 1000]],
        stride=2, groups=2,
    ),
    case(
        "F05", [[1, 2], [3, 4], [5, 6]], [[[1, 1, 1, 1]], [[1, 2, 3, 4]], [[1, 0, 0, 1]]],
        [[1, 3, 3, 2], [6, 13, 20, 12], [0, 6, 5, 0]], stride=2, padding=1, groups=3,
    ),
    case("F07", [1, 2, 3], [1, 10], [1, 2, 13, 20, 30], dilation=2),
    case("F09", [1, 2, 3], [1, 10], [6, 5, 17, 5, 28, 5, 35], b=5, stride=2, dilation=2),
    case("F11", [1, 2], [1, 10, 100], [1, 0, 2, 10, 0, 20, 100, 0, 200], stride=2, dilation=3),
    case("F13 op 0", [1, 2, 3], [1, 10, 100], [10, 102, 20, 203, 30], stride=2, padding=1),
    case(
        "F13 op 1", [1, 2, 3], [1, 10, 100], [10, 102, 20, 203, 30, 300],
        stride=2, padding=1, output_padding=1,
    ),
    case(
        "F15", [1, 2], [1, 10, 100, 1000, 10000], [100, 1002, 10020, 200, 2000, 20000],
        stride=3, padding=2, output_padding=2,
    ),
    case("F19", [1, 2], [1, 10], [10, 19, 11, 29, 9], b=9, stride=2, output_padding=1),
    case("F33 begin", [1, 2, 3], [1, 10], [12, 23, 30], padding=(1, 0)),
    case("F33 end", [1, 2, 3], [1, 10], [1, 12, 23], padding=(0, 1)),
    case("F35", [1, 2, 3, 4, 5, 6, 7, 8], [1, 10, 100], [456, 567, 678, 780, 800], padding=(5, 0)),
    case("F39", [1, 2], [1, 10, 100], [1, 10, 102, 20, 200, 0], stride=2, output_padding=1),
    case("F41", [1, 2], [1, 10], [101, 110, 100, 100, 102, 120], b=100, stride=4),
    case("F43", [1, 2, 3], [2], [12, 10, 10, 14, 10, 10, 16], b=10, stride=3),
    case("F44 stride 2", [1, 1], [1, 1], [1, 1, 1, 1], stride=2),
    case("F44 stride 1", [1, 1], [1, 1], [1, 2, 1]),
    case(
        "F49", [[1, 2], [3, 4]], [[[1], [2], [3]], [[4], [5], [6]]], [[13, 18], [17, 24], [21, 30]]
    ),
    case("F51", [1, 0, 0], [1, 2, 3], [1, 2, 3, 0, 0]),
    case(
        "F54", [[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[[1, 10]], [[2, 20]], [[3, 30]]],
        [30, 336, 402, 420],
    ),
    case("F84 L > K", [1, 2, 3, 4, 5], [1, 10], [1, 10, 2, 20, 3, 30, 4, 40, 5, 50], stride=2),
    case(
        "F84 K > L", [1, 2], [1, 10, 100, 1000, 10000], [1, 10, 102, 1020, 10200, 2000, 20000],
        stride=2,
    ),
    *(
        case(
            f"F86 n = {n}", [[c + 1] for c in range(n)], [[[10 * c + 10]] for c in range(n)], [y]
        )
        for n, y in ((3, 140), (5, 550), (6, 910), (7, 1400))
    ),
    case("F117 op 0", [1] * 4, [1] * 10, [1, 1, *[2] * 15, 1, 1], stride=5, padding=3),
    case(
        "F117 op 1", [1] * 4, [1] * 10, [1, 1, *[2] * 15, 1, 1, 1],
        stride=5, padding=3, output_padding=1,
    ),
]  # fmt: skip
