"""Whatever parses is understood or refused: semantic analysis never fails in another way."""

from __future__ import annotations

import random
import re
from importlib.resources import files

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from convdsl.diagnostics import CdslError, render
from convdsl.ir.equation import System
from convdsl.ir.evaluate import evaluate_system
from convdsl.sema.emptiness import check_reductions
from convdsl.sema.instantiate import instantiate
from convdsl.sema.resolve import resolve_op
from convdsl.sema.sizes import bind_parameters, complete_sizes
from convdsl.syntax import ast
from convdsl.syntax.parser import parse

from .syntax_trees import programs

TEXTS = [
    path.read_text("utf-8")
    for path in sorted(files("convdsl.ops").iterdir(), key=lambda p: p.name)
    if path.name.endswith(".cdsl")
]
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9]+|==|<=|>=|//|[-+*/%<>()\[\],|]")


def _analyse(op: ast.Op, number: int) -> None:
    """Everything up to the system with numbers; parameters and sizes get small numbers."""
    resolved = resolve_op(op)
    given_ = {p.name: number if p.kind == "int" else 0.5 for p in resolved.parameters}
    for params in ({p.name: given_[p.name] for p in resolved.parameters if p.default is None},
                   given_):  # fmt: skip
        try:
            parameters = bind_parameters(resolved, params)
            known = complete_sizes(resolved, parameters, {}, partial=True)
            check_reductions(resolved, parameters, instantiate(resolved, parameters, known))
            known = dict.fromkeys(resolved.input_sizes, number + 1)
            known = complete_sizes(resolved, parameters, known)
            _evaluate(instantiate(resolved, parameters, known))
        except CdslError as error:
            render(error)


def _evaluate(system: System) -> None:
    """The definition of what was accepted: every read is inside, every element is defined once."""
    shapes = {t.name: [s.as_int() or 0 for s in t.shape] for t in system.tensors}
    if sum(np.prod(shape) for shape in shapes.values()) < 100_000:
        inputs = {t.name: np.ones(shapes[t.name]) for t in system.inputs}
        out = evaluate_system(system, inputs)[system.output.name]
        assert list(out.shape) == shapes[system.output.name]


@given(programs(), st.integers(-1, 3))
def test_any_tree(program: ast.Program, number: int) -> None:
    for op in program.ops:
        try:
            _analyse(op, number)
        except CdslError as error:
            render(error)


@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False), st.integers(-1, 3))
def test_shipped_ops_with_words_exchanged(text: str, rng: random.Random, number: int) -> None:
    """Near misses reach deeper than trees at random."""
    words = list(_WORD.finditer(re.sub(r"#.*", "", text)))
    text = re.sub(r"#.*", "", text)
    for _ in range(rng.randint(1, 2)):
        here, there = rng.choice(words), rng.choice(words)
        text = text[: here.start()] + there.group() + text[here.end() :]
        words = list(_WORD.finditer(text))
    try:
        for op in parse(text).ops:
            _analyse(op, number)
    except CdslError as error:
        render(error)
