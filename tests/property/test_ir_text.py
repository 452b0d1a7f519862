"""Whatever is printed reads back equal: any names, any values, any shape of program."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from convdsl.diagnostics import CdslError
from convdsl.ir.equation import Equation, Piece, Role, System, Tensor
from convdsl.ir.expr import (
    FUNCTIONS,
    Access,
    Binary,
    Call,
    Cast,
    Const,
    DType,
    Expr,
    Guard,
    Load,
    Param,
    Pred,
    Reduce,
    Scalar,
    Select,
    Var,
)
from convdsl.ir.index import Index, const, floordiv, maximum, minimum, modulo, sym
from convdsl.ir.loop import (
    Accumulate,
    Buffer,
    For,
    If,
    Kernel,
    Let,
    Level,
    LoopProgram,
    Memory,
    Stmt,
    Store,
)
from convdsl.ir.reader import read_program, read_system
from convdsl.ir.text import print_program, print_system
from convdsl.ir.verify_site import is_name

# Words of the grammar may be names, too.
WORDS = """n N t.t x' _y e1 inf for let if in else temp f32 select guard kernel func thread gemm.m
    vector input"""
words = st.sampled_from(WORDS.split())
names = st.one_of(words, st.from_regex(r"\A[A-Za-z_][A-Za-z0-9_]{0,4}\Z").filter(is_name))


def grow(inner: st.SearchStrategy[Index]) -> st.SearchStrategy[Index]:
    divisors = st.one_of(st.integers(1, 9).map(const), names.map(lambda n: sym(n) + 1))
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a - b, inner, inner),
        st.builds(lambda a, b: a * b, inner, inner),
        st.builds(floordiv, inner, divisors),
        st.builds(modulo, inner, divisors),
        st.builds(lambda args: minimum(*args), st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda args: maximum(*args), st.lists(inner, min_size=1, max_size=3)),
    )


indices = st.recursive(
    st.one_of(st.integers(-999, 999).map(const), names.map(sym)), grow, max_leaves=4
)
small = st.lists(indices, max_size=3).map(tuple)
variables = st.builds(Var, names, indices, indices)
preds = st.builds(Pred, st.sampled_from(["ge", "eq", "ne"]), indices)
few_preds = st.lists(preds, max_size=3).map(tuple)
storage = st.dictionaries(names, st.tuples(small, st.sampled_from(get_args(DType))), min_size=1)
Storage = dict[str, tuple[tuple[Index, ...], DType]]


@st.composite
def accesses(draw: st.DrawFn, known: Storage) -> Access:
    """To something declared, through its own dims or a view."""
    name = draw(st.sampled_from(sorted(known)))
    dims = draw(st.one_of(st.just(known[name][0]), small))
    index = draw(st.lists(indices, min_size=len(dims), max_size=len(dims)))
    return Access(name, tuple(index), dims)


def values(known: Storage, reductions: bool) -> st.SearchStrategy[Expr]:
    """Of any dtypes: the text does not depend on them being right."""

    def load(access: Access) -> Load:
        return Load(access, "i32" if known[access.tensor][1] == "i32" else "f32")

    floats = st.floats(allow_nan=False).map(lambda x: Const(x, "f32"))
    integers = st.integers(-(2**31), 2**31).map(lambda x: Const(x, "i32"))
    scalars = st.builds(Scalar, indices, st.sampled_from(["f32", "i32"]))
    leaves: list[st.SearchStrategy[Expr]] = [
        floats,
        integers,
        scalars,
        accesses(known).map(load),
        names.map(Param),
    ]

    def nest(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        compare = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
        out: list[st.SearchStrategy[Expr]] = [
            st.builds(Binary, st.sampled_from(["+", "-", "*", "/", "max", "min"]), inner, inner),
            st.builds(
                Call,
                st.sampled_from(FUNCTIONS),
                st.lists(inner, min_size=1, max_size=2).map(tuple),
            ),
            st.builds(Cast, st.sampled_from(["f32", "f16", "i32"]), inner),
            st.builds(Select, compare, inner, inner, inner, inner),
            st.builds(Guard, few_preds, inner, inner),
        ]
        if reductions:
            reducers = st.sampled_from(["sum", "prod", "max", "min"])
            bound = st.lists(variables, max_size=2).map(tuple)
            out.append(st.builds(Reduce, reducers, bound, few_preds, inner, st.none() | inner))
        return st.one_of(out)

    return st.recursive(st.one_of(leaves), nest, max_leaves=4)


def bodies(known: Storage) -> st.SearchStrategy[tuple[Stmt, ...]]:
    """Blocks, empty ones included."""
    operators = st.none() | st.sampled_from(get_args(Accumulate))
    stores = st.builds(Store, accesses(known), values(known, False), operators)

    def nest(inner: st.SearchStrategy[Stmt]) -> st.SearchStrategy[Stmt]:
        body = st.lists(inner, max_size=3).map(tuple)
        return st.one_of(
            st.builds(For, variables, st.sampled_from(get_args(Level)), body),
            st.builds(Let, names, indices, body),
            st.builds(If, st.lists(preds, min_size=1, max_size=2).map(tuple), body),
        )

    return st.lists(st.recursive(stores, nest, max_leaves=4), max_size=3).map(tuple)


def numbers(constant: bool) -> st.SearchStrategy[tuple[Fraction, ...]]:
    """The values of a constant; none of anything else."""
    return st.lists(st.fractions(), max_size=3 if constant else 0).map(tuple)


@st.composite
def buffers(draw: st.DrawFn, known: Storage, memories: list[Memory]) -> tuple[Buffer, ...]:
    out = []
    for name, (dims, dtype) in known.items():
        memory = draw(st.sampled_from(memories))
        threads = draw(st.integers(0, len(dims))) if memory == "register" else 0
        out.append(Buffer(name, dtype, dims, memory, threads, draw(numbers(memory == "constant"))))
    return tuple(out)


definitions = st.lists(st.tuples(names, indices), max_size=2).map(tuple)
sizes = st.lists(names, max_size=3).map(tuple)


@st.composite
def programs(draw: st.DrawFn) -> LoopProgram:
    known: Storage = draw(storage)
    shared = draw(buffers(known, ["input", "output", "temp", "constant"]))
    kernels = []
    for name in draw(st.lists(names, max_size=2)):
        own: Storage = draw(storage)
        locals_ = draw(buffers(own, ["workgroup", "register", "temp"]))
        body = draw(bodies({**known, **own}))
        kernels.append(Kernel(name, locals_, body, draw(st.text(max_size=8))))
    return LoopProgram(draw(names), draw(sizes), draw(definitions), shared, tuple(kernels))


@st.composite
def systems(draw: st.DrawFn) -> System:
    tensors = []
    dtypes: tuple[DType, ...] = get_args(DType)
    for name in draw(st.lists(names, min_size=1, max_size=3, unique=True)):
        axes = draw(st.lists(st.lists(indices, max_size=2).map(tuple), max_size=3).map(tuple))
        dtype = draw(st.sampled_from(dtypes))
        default = draw(st.none() | st.floats(allow_nan=False))
        role: Role = draw(st.sampled_from(get_args(Role)))
        given = draw(numbers(role == "constant"))
        tensors.append(Tensor(name, dtype, axes, role, default, given))
    known: Storage = {t.name: (t.dims, t.dtype) for t in tensors}
    pieces = st.builds(
        Piece,
        st.lists(variables, max_size=2).map(tuple),
        few_preds,
        accesses(known),
        values(known, True),
        st.just("definition") | st.text(max_size=8),
    )
    equations = [
        Equation(name, draw(st.lists(pieces, max_size=2).map(tuple)))
        for name in draw(st.lists(names, max_size=2))
    ]
    heading = draw(names), draw(sizes), draw(definitions)
    return System(*heading, tuple(tensors), tuple(equations))


@given(programs())
def test_a_loop_program_reads_back(program: LoopProgram) -> None:
    text = print_program(program)
    assert read_program(text) == program
    assert print_program(read_program(text)) == text


@given(systems())
def test_a_system_reads_back(system: System) -> None:
    text = print_system(system)
    assert read_system(text) == system


@given(indices)
def test_an_index_reads_back(index: Index) -> None:
    text = f"func f()\n  let a = {index}\n"
    assert read_program(text).definitions == (("a", index),)


@given(programs(), st.data())
def test_a_damaged_text_is_refused_with_its_place(
    program: LoopProgram, data: st.DataObject
) -> None:
    text = print_program(program)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 5)))
    insert = data.draw(st.text(alphabet="\n  aN0.(){}[]<>=+-*/#|,:$\u00e9", max_size=3))
    damaged = text[:start] + insert + text[end:]
    try:
        read_program(damaged)
    except CdslError as error:
        refusal = error
    else:
        return  # it still means something
    assert refusal.code.startswith("E04")
    assert refusal.span is not None
    assert 0 <= refusal.span.start <= len(damaged)
    assert str(refusal)


def test_a_nan_keeps_its_text() -> None:
    store = Store(Access("s", (), ()), Const(math.nan, "f32"))
    program = LoopProgram(
        "f", (), (), (Buffer("s", "f32", (), "output"),), (Kernel("k", (), (store,)),)
    )
    text = print_program(program)
    assert "+nan" in text
    assert print_program(read_program(text)) == text
