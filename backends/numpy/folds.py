"""The functions of a generated module that depend on some inputs alone, and `bind`, which keeps them.

    def f(x, w, *, out=None, run=...):      def make_v(w):            def bind(**constants):
        v = run(make_v, w)                      v = ...                   return _bind(f, ...)
        ...                                     return v

`run` calls what it is given; in a bound function it keeps the results instead.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from convdsl.backends.numpy import code
from convdsl.backends.numpy.arrays import arrays, needed, widen
from convdsl.backends.numpy.code import Item, Suite
from convdsl.backends.numpy.module import NumpyFold
from convdsl.backends.numpy.render import names_in, render
from convdsl.backends.numpy.scope import Scope
from convdsl.ir.folding import Fold, sizes_behind

# lambda fold, *given: fold(*given)
PLAINLY: ast.expr = ast.Lambda(
    ast.arguments([], [ast.arg("fold")], ast.arg("given"), [], [], None, []),
    code.call("fold", ast.Starred(code.name("given"), ast.Load())),
)
BOUND = """\
`{}` with some of its inputs as constants; what it returns is called with the others.

What depends on the constants alone is computed once, at the first call; what also depends on sizes
is kept for the last ones."""


@dataclass(frozen=True, slots=True)
class Folded:
    """A fold of the program with the statements of its kernels."""

    fold: Fold
    kernels: list[Item]


@dataclass(frozen=True, slots=True)
class Function:
    """The text of a fold's function, the statement that calls it, and its record."""

    text: Suite
    call: ast.stmt
    record: NumpyFold


def split(
    scope: Scope, kernels: list[Item], folded: Sequence[Folded]
) -> tuple[list[Item], list[Function]]:
    """The statements of the main function behind the checks, and the functions that it calls."""
    return _Splitter(scope, folded).split(kernels)


def function(
    name: str, arguments: Sequence[str], body: list[Item], doc: str, options: Mapping[str, ast.expr]
) -> Suite:
    """A function that warns of nothing; `options` are keyword-only."""
    signature = ast.arguments(
        [], [ast.arg(a) for a in arguments], None,
        [ast.arg(o) for o in options], [*options.values()], None, [],
    )  # fmt: skip
    quiet = code.call(code.np("errstate"), all=code.text("ignore"))
    return Suite(ast.FunctionDef(name, signature, [], [quiet], lineno=0), body, doc)


def binder(entry: str, arguments: Sequence[str], made: Sequence[Function], scope: Scope) -> Suite:
    """`bind`, in which the names of inputs are those of the arguments."""
    names = ast.List([code.text(a) for a in arguments], ast.Load())
    table = ast.Dict(
        [code.name(f.record.function) for f in made],
        [
            ast.List(
                [
                    code.text(scope.names.get("buffer", b.name))
                    for b in scope.program.buffers
                    if b.name in f.record.inputs
                ],
                ast.Load(),
            )
            for f in made
        ],
    )
    call = code.call(scope.helper("_bind"), code.name(entry), names, table, code.name("constants"))
    header = ast.FunctionDef(
        "bind", ast.arguments([], [], None, [], [], ast.arg("constants"), []), [], [], lineno=0
    )
    return Suite(header, [ast.Return(call)], BOUND.format(entry))


class _Splitter:
    def __init__(self, scope: Scope, folded: Sequence[Folded]) -> None:
        self._scope, self._folded = scope, folded
        self._buffers = scope.program.buffers
        self._inputs = frozenset(b.name for b in self._buffers if b.memory == "input")
        self._results = frozenset(r for f in folded for r in f.fold.results)

    def split(self, kernels: list[Item]) -> tuple[list[Item], list[Function]]:
        scope = self._scope
        used = names_in(kernels)
        values = list[Function]()
        inline = list[Item]()
        for name, node in scope.prepared.values():
            if name not in used:
                continue
            if self._reads(names_in([code.evaluate(node)])) < self._inputs:
                values.append(self._value(name, name, node))
            else:
                inline.append(code.assign(code.name(name), node))
        used |= names_in(inline)
        given = set(self._results)
        for b in self._buffers if len(self._inputs) > 1 else ():
            if scope.widened(b.name) and needed(b, scope, used):
                given.add(b.name)
                target = self._name(b.name)
                name = scope.names.get("widened", b.name, f"{target}_f32")
                values.append(self._value(name, target, widen(b.name, scope), b.name))
        made = [*self._called(used), *values]
        body = [*arrays(scope, used, given), *inline, *kernels]
        return [*(f.call for f in made), *body], made

    def _called(self, used: set[str]) -> list[Function]:
        """The folds whose results are used, here or by one another, in the order of their calls."""
        made = list[Function]()
        for folded in reversed(self._folded):
            wanted = [
                b.name for b in self._buffers
                if b.name in folded.fold.results and needed(b, self._scope, used)
            ]  # fmt: skip
            if wanted:
                made.insert(0, self._fold(folded, [self._name(b) for b in wanted]))
                used = used | set(made[0].record.arrays)
        return made

    def _fold(self, folded: Folded, results: list[str]) -> Function:
        scope = self._scope
        used = names_in(folded.kernels)
        inline: list[Item] = [
            code.assign(code.name(n), node) for n, node in scope.prepared.values() if n in used
        ]
        used |= names_in(inline)
        given = self._results - frozenset(folded.fold.results)
        body = [*arrays(scope, used, given), *inline, *folded.kernels]
        return self._function(body, results, results, folded.fold)

    def _value(self, result: str, target: str, node: ast.expr, given: str = "") -> Function:
        """One value of inputs; `given`: the one that is taken as it is."""
        value = code.assign(code.name(result), node)
        body = [*arrays(self._scope, names_in([value]), {given}), value]
        fold = Fold(self._reads(names_in(body)), frozenset(), (), (result,), "")
        return self._function(body, [result], [target], fold)

    def _function(
        self, body: list[Item], results: list[str], targets: list[str], fold: Fold
    ) -> Function:
        """`fold` knows what the results of others, which the body uses, depend on in turn."""
        scope, program = self._scope, self._scope.program
        used = names_in(body)
        reads = self._reads(used)
        inputs = [b.name for b in self._buffers if b.name in reads]
        others = sorted(used & {self._name(r) for r in self._results - frozenset(fold.results)})
        names = [*program.sizes, *(name for name, _ in program.definitions)]
        numbers = [n for n in names if scope.identifier(n) in used]
        freeze = [
            code.evaluate(code.method(code.name(r), "setflags", write=ast.Constant(False)))
            for r in results
        ]
        returned = ast.Return(_one_or_tuple(results))
        name = scope.names.get("fold", results[0], f"make_{results[0]}")
        arguments = [*map(self._name, inputs), *others, *map(scope.identifier, numbers)]
        suite = function(name, arguments, [*body, *freeze, returned], _doc(results, arguments), {})
        call = code.call("run", *map(code.name, [name, *arguments]))
        return Function(
            suite,
            code.assign(_one_or_tuple(targets), call),
            NumpyFold(
                name,
                (*inputs, *others),
                tuple(numbers),
                fold.inputs,
                fold.sizes | sizes_behind(numbers, program),
                tuple(results),
                "\n".join([fold.key, *render([suite])]),
            ),
        )

    def _reads(self, used: set[str]) -> frozenset[str]:
        """The inputs that a body mentions, itself or by a view."""
        return frozenset(
            b.name for b in self._buffers
            if b.name in self._inputs and needed(b, self._scope, used)
        )  # fmt: skip

    def _name(self, buffer: str) -> str:
        return self._scope.names.get("buffer", buffer)


def _one_or_tuple(names: Sequence[str]) -> ast.expr:
    return code.name(names[0]) if len(names) == 1 else code.sequence(map(code.name, names))


def _doc(results: Sequence[str], arguments: Sequence[str]) -> str:
    return f"Compute {', '.join(results)} from {', '.join(arguments) or 'nothing'} alone."
