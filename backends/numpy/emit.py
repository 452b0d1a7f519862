"""The NumPy emitter: a loop program as the text of a Python module.

Nests of `slice` and `gemm.*` loops become single NumPy statements (`nest`, `gemm`); all other loops
become Python loops, and so does as much of a nest as has no NumPy form.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from convdsl.backends.numpy import code
from convdsl.backends.numpy.access import NotVector
from convdsl.backends.numpy.arrays import allocate, scratch
from convdsl.backends.numpy.code import Blank, Comment, Item
from convdsl.backends.numpy.folds import Folded
from convdsl.backends.numpy.fuse import Chain, chain, covers, fills, simplify
from convdsl.backends.numpy.gemm import NotGemm, matmul
from convdsl.backends.numpy.header import module_text
from convdsl.backends.numpy.integers import condition
from convdsl.backends.numpy.module import NumpyModule
from convdsl.backends.numpy.nest import elementwise, make_nest
from convdsl.backends.numpy.render import augmented, has_products, names_in
from convdsl.backends.numpy.scope import Scope
from convdsl.ir.expr import Var, ge
from convdsl.ir.folding import folds
from convdsl.ir.loop import For, If, Kernel, Let, Level, LoopProgram, Stmt, Store


def emit_module(
    program: LoopProgram, axes: Mapping[str, tuple[int, ...]] | None = None, *, title: str = ""
) -> NumpyModule:
    """The module of a program.

    `axes` gives for each input and the output how many of the buffer's dims make up each axis of
    the user's array (left out: one each). `title` is put into the docstring.
    """
    scope = Scope(program, axes or {})
    texts = [
        [Blank(), Comment(kernel.comment or kernel.name), *_kernel(kernel, scope)]
        for kernel in program.kernels
    ]
    folded = [Folded(f, [i for k in f.kernels for i in texts[k]]) for f in folds(program)]
    apart = {k for f in folded for k in f.fold.kernels}
    rest = [i for k, items in enumerate(texts) if k not in apart for i in items]
    return module_text(scope, rest, folded, title)


def _kernel(kernel: Kernel, scope: Scope) -> list[Item]:
    for buffer in kernel.locals:
        scope.add_local(buffer)
    body = _body(kernel.body, scope)
    shared = [b for b in kernel.locals if b.memory != "worker"]
    return [*allocate(shared, scope, names_in(body)), *body]


def _body(body: tuple[Stmt, ...], scope: Scope) -> list[Item]:
    out: list[Item] = []
    at = 0
    while at < len(body):
        either = _either(body[at], body[at + 1], scope) if at + 1 < len(body) else None
        if either is not None:
            out += either
            at += 2
            continue
        fused = _pair(body[at], body[at + 1], scope) if at + 1 < len(body) else None
        if fused is not None:
            out += fused
            at += 2
        else:
            out += _statement(body[at], scope)
            at += 1
    return out


def _either(first: Stmt, second: Stmt, scope: Scope) -> list[Item] | None:
    """Two statements of which one condition runs one, as `if` and `else`."""
    if not isinstance(first, If) or not isinstance(second, If):
        return None
    if len(first.conditions) != 1 or len(second.conditions) != 1:
        return None
    (yes,), (no,) = first.conditions, second.conditions
    if yes.kind != "ge" or no.kind != "ge" or no.index != -1 - yes.index:
        return None
    test = condition(yes, lambda n: code.name(scope.identifier(n)))
    bodies = []
    for pred, body in ((yes, first.body), (no, second.body)):
        with scope.facts.scope():
            scope.facts.assume(pred)
            bodies.append(_body(body, scope))
    return [code.when(test, *bodies)]


def _pair(first: Stmt, second: Stmt, scope: Scope) -> list[Item] | None:
    """A store and an accumulation over the same region, with the accumulated value written first.

    So it needs no temporary: zeros before a product are not stored at all, a bias is added after.
    """
    start, rest = chain(first), chain(second)
    if start is None or rest is None or not rest.vars:
        return None
    start, rest = simplify(start, scope.facts), simplify(rest, scope.facts)
    if not covers(start, rest, scope.facts):
        return None
    late: list[Item] = []
    try:
        if not fills(start, rest):
            store = start.store
            if scope.buffers[store.access.tensor].dtype == "f16" or rest.store.accumulate != "+":
                return None
            late = _chain(Chain(start.vars, replace(store, accumulate="+")), scope)
        return _vector(rest, scope, start, late)
    except NotVector:
        return None


def _statement(stmt: Stmt, scope: Scope) -> list[Item]:
    found = None if isinstance(stmt, Let) else chain(stmt)  # a name on the host stays one
    if found is not None:
        return _chain(simplify(found, scope.facts), scope)
    facts = scope.facts
    match stmt:
        case For(var, level, body):
            return _loop(var, scope, lambda: _body(body, scope), level)
        case Let(name, value, body):
            with facts.scope():
                facts.let(name, value)
                target = code.name(scope.identifier(name))
                return [code.assign(target, scope.integer(value)), *_body(body, scope)]
        case If(conditions, body):
            tests = [condition(p, lambda n: code.name(scope.identifier(n))) for p in conditions]
            with facts.scope():
                for p in conditions:
                    facts.assume(p)
                return (
                    [code.when(code.both(tests), _body(body, scope))]
                    if tests
                    else _body(body, scope)
                )
        case Store():
            raise NotImplementedError


def _loop(
    var: Var, scope: Scope, inner: Callable[[], list[Item]], level: Level = "host"
) -> list[Item]:
    """A Python loop around what `inner()` emits, or a function that threads call."""
    low = None if scope.facts.expand(var.low).as_int() == 0 else scope.integer(var.low)
    bounds = code.bounds(low, scope.integer(var.high))
    name = scope.identifier(var.name)

    def body() -> list[Item]:
        with scope.facts.scope():
            scope.facts.enter(var)
            scope.host_depth += 1
            out = inner()
            scope.host_depth -= 1
        return out

    if level != "worker":
        return [code.loop(name, bounds, body())]
    with scope.worker(var.name) as own:
        items = body()
    each, run = (
        scope.names.get("worker", f"{w} {var.name}", f"{w}_{name}") for w in ("each", "run")
    )
    used = names_in(items)
    private = [b for b in scope.buffers.values() if b.memory == "worker"]
    made = [*allocate(private, scope, used), *scratch(own, scope, used)]
    if scope.facts.expand(var.extent).as_int() in (0, 1):
        return [code.loop(name, bounds, [*made, *items])]
    helper = scope.helper("_products_on_threads" if has_products(items) else "_on_threads")
    outside = augmented(items)  # arrays that `a += ..` would make variables of the function
    nonlocal_ = [ast.Nonlocal(outside)] if outside else []
    inside = code.function(run, [name], [*nonlocal_, *items])
    make = [*made, inside, ast.Return(code.name(run))]
    call = code.call(helper, code.name(each), code.call("range", *bounds))
    return [code.function(each, [], make), code.evaluate(call)]


def _chain(found: Chain, scope: Scope) -> list[Item]:
    """A nest: one statement if there is one, else a Python loop around a smaller nest."""
    try:
        return _vector(found, scope)
    except NotVector as reason:
        var = _peel(found, reason.names, scope)
    rest = Chain(tuple(v for v in found.vars if v[0].name != var.name), found.store)
    return _loop(var, scope, lambda: _chain(simplify(rest, scope.facts), scope))


def _peel(found: Chain, names: frozenset[str], scope: Scope) -> Var:
    """The variable to loop over: the outermost one, or for a reduction a short one of `names`."""
    variables = [v for v, _ in found.vars]
    own = {v.name for v in variables}
    fits = [v for v in variables if v.name in names and not (v.low.free | v.high.free) & own]
    if found.store.accumulate is None or not fits:
        return variables[0]
    return min(fits, key=lambda v: scope.facts.guess(v.extent))


def _vector(
    found: Chain, scope: Scope, fill: Chain | None = None, late: Sequence[Item] = ()
) -> list[Item]:
    """A nest as a NumPy statement. `fill`: the store before it, which this and `late` replace."""
    levels = {v.name: level for v, level in found.vars}
    nest = make_nest(scope, [v for v, _ in found.vars])
    store, items = found.store, list[Item]()
    if any(level.startswith("gemm") for level in levels.values()):
        try:
            items = matmul(nest, store, levels, fill is not None)
        except NotGemm:
            nest.guard.clear()
    if not items:
        items = elementwise(nest, store, fill is not None)
    items += late
    if not nest.guard:
        return items
    conditions = [ge(v.extent - 1) for v, _ in found.vars if v.name in nest.guard]
    tests = [condition(p, lambda n: code.name(scope.identifier(n))) for p in conditions]
    reduces = not nest.guard <= store.access.free
    otherwise = _chain(fill, scope) if fill is not None and reduces else None
    return [code.when(code.both(tests), items, otherwise)]
