"""Proofs that pieces cover their tensor, and the text for isl."""

from __future__ import annotations

import threading

import islpy as isl
import pytest

from convdsl.diagnostics import InternalError
from convdsl.ir import cover
from convdsl.ir.cover import Verdict, prove_cover, prove_covers
from convdsl.ir.equation import System
from convdsl.ir.expr import Var, ge
from convdsl.ir.index import ZERO, Index, const, maximum, minimum, sym
from convdsl.ir.reader import read_system
from convdsl.ir.sets import NotAffineError, Parameters, Space, TooHardError, domain_set, limited
from tests.unit.ir_programs import conv

N, L, x, y = sym("N"), sym("L"), sym("x"), sym("y")


def system(pieces: str, dims: str = "N, L", sizes: str = "N, L, M", let: str = "") -> System:
    lines = "".join(f"  {line}\n" for line in pieces.strip("\n").split("\n") if line)
    head = f"system s({sizes})\n{let}  tensor y: f32[{dims}] output\nequation y\n"
    return read_system(head + lines)


def verdict(*args: str, **more: str) -> Verdict:
    return prove_covers(system(*args, **more))["y"]


def phases(stride: int, dilation: int, begin: int, extra: str = "") -> str:
    """Output positions o + begin = stride*t + dilation*r, as the phase rewrite writes them."""
    at = f"t*{stride} + r*{dilation} - {begin}"
    first = (begin - (stride - 1) * dilation) // stride
    return (
        f"for n in 0..N, r in 0..{stride}, t in {first}..-((-LO - {begin}) // {stride})"
        f" if {at} >= 0, {at} < LO{extra}\n  y[n, {at}] = 1.0"
    )


LET = "  let LO = L*4 + M - 4\n"
HOLES = "\nfor n in 0..N, o in 0..LO if (o + 2) % 2 != 0  # holes\n  y[n, o] = 0.0"


@pytest.mark.parametrize("form", [(1, 1, 0), (4, 1, 0), (3, 2, 1), (512, 1, 7), (1024, 1, 0)])
def test_phases_cover(form: tuple[int, int, int]) -> None:
    assert verdict(phases(*form), "N, LO", let=LET) is Verdict.PROVED


def test_phases_with_holes_cover() -> None:
    even = phases(2, 2, 2).replace("r in 0..2", "r in 0..1")
    assert verdict(even + HOLES, "N, LO", let=LET) is Verdict.PROVED


@pytest.mark.parametrize(
    "pieces",
    [
        "for n in 0..N, l in 0..L\n  y[n, l] = 1.0",
        (
            "for n in 0..N, l in 0..L if l < 3\n  y[n, l] = 1.0\n"
            "for n in 0..N, l in 3..L\n  y[n, l] = 1.0"
        ),
        (
            "for n in 0..N, t in 0..L // 4, r in 0..4\n  y[n, t*4 + r] = 1.0\n"
            "for n in 0..N, l in L // 4*4..L\n  y[n, l] = 1.0"
        ),
        (
            "for n in 0..N, l in 0..min(L, M)\n  y[n, l] = 1.0\n"
            "for n in 0..N, l in M..max(L, M)\n  y[n, l] = 1.0"
        ),
    ],
)
def test_covers(pieces: str) -> None:
    assert verdict(pieces) is Verdict.PROVED


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ("", r"\[0, 0\] of \[N, L\] is written by no piece at N = 1, L = 1"),
        ("for n in 0..N, l in 1..L\n  y[n, l] = 1.0", r"\[0, 0\] .* by no piece"),
        ("for n in 0..N, l in 0..L + 1\n  y[n, l] = 1.0", "outside the tensor"),
        ("for n in 0..N, l in 0..L\n  y[n, l // 2] = 1.0", r"twice \(definition\)"),
        ("for n in 0..N, l in 0..L, m in 0..M  # m\n  y[n, l] = 1.0", r"twice \(m\)"),
        (
            (
                "for n in 0..N, l in 0..L if l < 4\n  y[n, l] = 1.0\n"
                "for n in 0..N, l in 3..L  # edge\n  y[n, l] = 1.0"
            ),
            r"\[0, 3\] of \[N, L\] is written twice \(once in edge\) at N = 1, L = 4",
        ),
    ],
)
def test_a_refuted_cover_gives_an_element(pieces: str, message: str) -> None:
    with pytest.raises(InternalError, match=message):
        verdict(pieces)


def test_what_is_not_affine_is_unproved() -> None:
    by_size = "for n in 0..N, t in 0..L, m in 0..M\n  y[n, t*M + m] = 1.0"
    assert verdict(by_size, "N, L*M") is Verdict.UNPROVED
    joined = "for n in 0..N, l in 0..L\n  y<N*L>[n*L + l] = 1.0"
    assert verdict(joined) is Verdict.UNPROVED
    by_division = "for n in 0..N, l in 0..L // M\n  y[n, l] = 1.0"
    assert verdict(by_division) is Verdict.UNPROVED  # for what we know, L // M may be L


def test_products_of_sizes_are_like_sizes() -> None:
    split = "for q in 0..1\n  y[q] = 1.0\nfor q in 1..N*M\n  y[q] = 1.0"
    assert prove_covers(system(split, "N*M"), [ge(N * sym("M") - 1)])["y"] is Verdict.PROVED
    assert verdict(split, "N*M") is Verdict.UNPROVED  # N*M = 0 refutes it, if N*M can be 0


def test_assumptions_restrict_the_sizes() -> None:
    pieces = "for n in 0..N, l in 0..1\n  y[n, l] = 1.0\nfor n in 0..N, l in 1..L\n  y[n, l] = 1.0"
    with pytest.raises(InternalError, match="outside the tensor"):
        verdict(pieces)
    assert prove_covers(system(pieces), [ge(L - 1)])["y"] is Verdict.PROVED


def test_ranks_and_axes_of_one() -> None:
    assert verdict("once\n  y[] = 1.0", "") is Verdict.PROVED
    assert verdict("for n in 0..N\n  y[n, 0] = 1.0", "N, 1") is Verdict.PROVED
    with pytest.raises(InternalError, match="no piece"):
        verdict("for n in 0..N\n  y[n, 0] = 1.0", "N, 2")
    with pytest.raises(InternalError, match="twice"):
        verdict("for n in 0..N\n  y[n, n] = 1.0\nonce\n  y[0, 0] = 1.0")


def test_the_definition_itself() -> None:
    with pytest.raises(InternalError, match=r"outside the tensor at N = 1, M = 1, K = 4, L = 0"):
        prove_covers(conv())  # its second piece writes a column that there may not be
    some = prove_cover(conv().tensor("h").dims, conv().equations[0].pieces)
    assert some is Verdict.PROVED


def test_too_hard_is_unproved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cover, "_OPERATIONS", 100)
    assert verdict(phases(3, 2, 1), "N, LO", let=LET) is Verdict.UNPROVED
    monkeypatch.undo()
    assert verdict(phases(3, 2, 1), "N, LO", let=LET) is Verdict.PROVED


def test_the_bound_is_lifted_afterwards() -> None:
    with pytest.raises(TooHardError), limited(1):
        domain_set([Var("x", ZERO, N)], ()).complement().coalesce()
    assert not domain_set([Var("x", ZERO, N)], ()).is_empty()


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (x * 2 - y + 3, "2*v0 + -1*v1 + 3"),
        ((x + N) // 4, "1*floor((1*p0 + 1*v0)/4)"),
        (x % 3, "1*((1*v0) mod 3)"),
        (minimum(x, N, 7), "1*min(7, 1*p0, 1*v0)"),
        (N * L - N * N, "1*q0 + -1*q1"),
        (N // L, "1*q0"),
        (ZERO, "0"),
    ],
)
def test_indices_for_isl(index: Index, text: str) -> None:
    assert Space(["x", "y"], Parameters()).index(index) == text


@pytest.mark.parametrize("index", [x * y, x * N, x // N, x % N, N * maximum(x, 0), (x // 2) * N])
def test_indices_that_isl_cannot_have(index: Index) -> None:
    with pytest.raises(NotAffineError):
        Space(["x", "y"], Parameters()).index(index)


def test_sets_are_what_they_say() -> None:
    """Against counting the points."""
    variables = [Var("x", const(-3), N), Var("y", ZERO, maximum(x, 2))]
    preds = [ge((x + 7) // 3 - y), ge(x % 4 - 1)]
    points = domain_set(variables, preds)
    for n in range(-4, 6):
        fixed = points.fix_val(isl.dim_type.param, 0, isl.Val.int_from_si(points.get_ctx(), n))
        expected = [
            (a, b)
            for a in range(-3, n)
            for b in range(max(a, 2))
            if (a + 7) // 3 - b >= 0 and a % 4 >= 1
        ]
        assert fixed.count_val().to_python() == len(expected)


def test_threads_have_their_own_isl() -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(5):
                assert verdict(phases(3, 2, 1), "N, LO", let=LET) is Verdict.PROVED
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
