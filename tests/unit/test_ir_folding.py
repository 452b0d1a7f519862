"""Folds of loop programs written by hand: what they need, their order, and what is none."""

from __future__ import annotations

import pytest

from convdsl.ir.folding import Fold, folds
from convdsl.ir.reader import read_program

HEAD = """\
func f(N, K)
  let M = N + K
  buffer x: f32[N] input
  buffer w: f32[K] input
  buffer g: f32[K] input
  buffer a: f32[K] temp
  buffer b: f32[K] temp
  buffer c: f32[M] temp
  buffer y: f32[N] output
"""


def store(name: str, buffer: str, value: str, high: str = "K") -> str:
    return f"kernel {name}\n  for i in 0..{high} serial\n    {buffer}[i] = {value}\n"


def found(*kernels: str) -> list[Fold]:
    return list(folds(read_program(HEAD + "".join(kernels))))


def facts(fold: Fold) -> tuple[str, str, tuple[int, ...], tuple[str, ...]]:
    inputs, sizes = "".join(sorted(fold.inputs)), "".join(sorted(fold.sizes))
    return inputs, sizes, fold.kernels, fold.results


def test_by_way_of_what_is_read() -> None:
    first, second, third = found(
        store("k0", "a", "w[i]"),
        store("k1", "b", "a[i] + g[i]"),
        store("k2", "c", "w[0]", "M"),
        store("k3", "y", "x[i] + a[0] + b[0] + c[0]", "N"),
    )
    assert facts(first) == ("w", "K", (0,), ("a",))
    assert facts(second) == ("gw", "K", (1,), ("b",))
    assert facts(third) == ("w", "KN", (2,), ("c",))
    assert first.key in second.key
    assert "M = K + N" in third.key


def test_kernels_of_one_fold_keep_what_is_between_to_themselves() -> None:
    (only,) = found(
        store("k0", "a", "w[i]"), store("k1", "b", "a[i]"), store("k2", "y", "x[i] + b[0]", "N")
    )
    assert facts(only) == ("w", "K", (0, 1), ("b",))


def test_pieces_of_one_buffer_stay_together() -> None:
    """One piece needs less than the other, but the buffer is kept or not as a whole."""
    (only,) = found(
        store("k0", "a", "1.0"),
        store("k1", "a", "g[i]"),
        store("k2", "b", "a[i] + x[0]"),
        store("k3", "y", "b[0] + w[0]", "N"),
    )[:1]
    assert facts(only) == ("g", "K", (0, 1), ("a",))


def test_no_input_at_all() -> None:
    first, *_ = found(store("k0", "a", "1.0"), store("k1", "y", "x[i] + a[0]", "N"))
    assert facts(first) == ("", "K", (0,), ("a",))


@pytest.mark.parametrize(
    "kernels",
    [
        [store("k0", "y", "1.0", "N")],
        [store("k0", "a", "w[i] + x[0] + g[i]"), store("k1", "y", "a[0]", "N")],
        # Written again after a reader: there is no one value to be kept.
        [
            store("k0", "a", "w[i]"), store("k1", "y", "x[i] + a[0]", "N"),
            store("k2", "a", "g[i]"), store("k3", "y", "x[i] + a[0]", "N"),
        ],
        # What comes from such a buffer is none either.
        [
            store("k0", "a", "w[i]"), store("k1", "b", "a[i]"), store("k2", "a", "g[i]"),
            store("k3", "y", "x[i] + a[0] + b[0]", "N"),
        ],
    ],
    ids=["output", "all inputs", "written again", "from what is written again"],
)  # fmt: skip
def test_what_is_no_fold(kernels: list[str]) -> None:
    assert found(*kernels) == []


def test_keys_tell_programs_apart() -> None:
    def key(*kernels: str) -> str:
        return found(*kernels)[0].key

    last = store("k1", "y", "x[i] + a[0]", "N")
    same = store("k1", "y", "x[i] * a[0]", "N")
    assert key(store("k0", "a", "w[i]"), last) == key(store("k0", "a", "w[i]"), same)
    assert key(store("k0", "a", "w[i]"), last) != key(store("k0", "a", "w[i] * 2.0"), last)
