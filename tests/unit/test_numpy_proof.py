"""The prover of the NumPy emitter gives up in bounded time."""

from __future__ import annotations

from convdsl.backends.numpy.proof import BUDGET, Facts
from convdsl.ir.index import const, sym


def test_many_quotients_cost_a_bounded_number_of_steps() -> None:
    """Each quotient may be tried before or after each other one: a search without a bound explodes."""
    facts = Facts(frozenset())
    index = const(0)
    for n in range(14):
        index = index + (sym(f"a{n}") * 3 + sym(f"b{n}")) // 5 - (sym(f"b{n}") * 2) // 7
    assert not facts.holds(index)
    assert -BUDGET * 40 < facts._budget <= BUDGET
