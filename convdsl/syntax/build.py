"""From the parser's reductions to the syntax tree, one method a grammar rule.

Lark calls the methods while it parses, innermost rule first, so nothing here recurses over the
input and a tree that grows too deep is refused while it grows. Each method gets its rule's tokens
and parts, punctuation included, and returns a `Part`: a node and the text it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from lark import Token, Transformer

from convdsl.diagnostics import Source, Span
from convdsl.syntax import ast, checks, operands
from convdsl.syntax.limits import MAX_DEPTH, too_deep

_NAME_TYPES = frozenset({"NAME", "OP", "SCHEDULE", "FOR", "IN", "WHERE"})


@dataclass(slots=True)
class Part:
    """What a rule became: a node (or a tuple of nodes), where it stands, how deep its tree is."""

    node: Any
    start_pos: int
    end_pos: int
    depth: int = 0


Child = Token | Part
Children = list[Child]


def _parts(children: Sequence[Child]) -> list[Part]:
    return [child for child in children if isinstance(child, Part)]


def _nodes(children: Sequence[Child]) -> tuple[Any, ...]:
    return tuple(part.node for part in _parts(children))


def _word(child: Child) -> str:
    """The text of a token, or nothing for a part."""
    return str(child) if isinstance(child, Token) else ""


class Builder(Transformer[Token, Any]):
    """Builds the nodes of one source at a time: set `source` before each parse."""

    def __init__(self) -> None:
        super().__init__(visit_tokens=False)
        self.source = Source("")

    def _at(self, first: Child, last: Child) -> Span:
        return Span(self.source, cast(int, first.start_pos), cast(int, last.end_pos))

    def _span(self, children: Sequence[Child]) -> Span:
        return self._at(children[0], children[-1])

    def _part(self, node: Any, children: Sequence[Child]) -> Part:
        """A part over all the children, as deep as the deepest of them."""
        depth = max((part.depth for part in _parts(children)), default=0)
        span = self._span(children)
        return Part(node, span.start, span.end, depth)

    def _expr(self, node: Any, children: Sequence[Child]) -> Part:
        """A part that is one level deeper than its children, if the limit allows."""
        part = self._part(node, children)
        part.depth += 1
        if part.depth > MAX_DEPTH:
            raise too_deep(self._span(children))
        return part

    def _row(self, children: Sequence[Child]) -> Part:
        """The nodes of a list."""
        return self._part(_nodes(children), children) if children else Part((), 0, 0)

    def _ref(self, token: Child) -> ast.Ref:
        return ast.Ref(_word(token), self._at(token, token))

    # -- programs and operators --------------------------------------------------------------------

    def start(self, children: Children) -> ast.Program:
        """All items in order."""
        return ast.Program(_nodes(children), self.source)

    def op(self, children: Children) -> Part:
        """`op name params -> output where { lets result }`."""
        _, name, params, _, output, where, opening, *body, closing = children
        inputs = tuple(checks.scalar_or_tensor(raw) for raw in cast(Part, params).node)
        result_of = checks.output(cast(Part, output).node)
        lets, result = checks.statements(_nodes(body), self._at(opening, closing))
        node = ast.Op(
            self._ref(name),
            inputs,
            result_of,
            cast(Part, where).node,
            lets,
            result,
            self._span(children),
        )
        return self._part(node, children)

    def params(self, children: Children) -> Part:
        """`( param, ... )`."""
        return self._row(children)

    def param(self, children: Children) -> Part:
        """`name : type [sizes] = default`; which of the two kinds it is, `op` decides."""
        name, _, kind, *rest = children
        raw = checks.RawParam(
            self._ref(name),
            self._ref(kind),
            next((p.node[1] for p in _parts(rest) if p.node[0] == "sizes"), None),
            next((p.node[1] for p in _parts(rest) if p.node[0] == "default"), None),
            self._span(children),
        )
        return self._part(raw, children)

    def sizes(self, children: Children) -> Part:
        """`[N, groups*C]`."""
        axes = _nodes(children)
        for axis in axes:
            operands.size(axis, "an axis")
        return self._part(("sizes", axes), children)

    def default(self, children: Children) -> Part:
        """`= number`."""
        value = cast(Part, children[1])
        operands.literal(value.node, self._at(value, value))
        return self._part(("default", value.node), children)

    def where(self, children: Children) -> Part:
        """`where chain, ...`, or nothing."""
        return self._row(children)

    def chain(self, children: Children) -> Part:
        """`size < size <= size`."""
        sizes = _nodes(children)
        for operand in sizes:
            operands.size(operand, "a `where` clause")
        ops = tuple(cast(ast.Compare, _word(c)) for c in children if isinstance(c, Token))
        return self._part(ast.Chain(sizes, ops, self._span(children)), children)

    def let(self, children: Children) -> Part:
        """`let h[n] = value`, or `let h: f16[n] = value`."""
        dtype = None
        kept = [children[1], *children[-3:]]
        if _word(children[2]) == ":":
            dtype = checks.dtype(self._ref(children[3]))
        definition = self.definition(kept).node
        return self._part(ast.Let(dtype, definition, self._span(children)), children)

    def definition(self, children: Children) -> Part:
        """`y[n, o] = value`."""
        name, axes, _, value = children
        operands.value(cast(Part, value).node)
        node = ast.Definition(
            self._ref(name), cast(Part, axes).node, cast(Part, value).node, self._span(children)
        )
        return self._part(node, children)

    # -- expressions -------------------------------------------------------------------------------

    def axes(self, children: Children) -> Part:
        """`[n, (g, c)]`."""
        return self._row(children)

    def axis(self, children: Children) -> Part:
        """`n`, or `(g, c)`."""
        names = tuple(self._ref(c) for c in children if cast(Token, c).type in _NAME_TYPES)
        span = self._span(children)
        if len(names) == 1 and len(children) > 1:
            raise checks.lonely_composite(names[0].name, span)
        return self._part(ast.Axis(names, span), children)

    def binary(self, children: Children) -> Part:
        """`left op right`."""
        left, op, right = children
        node = ast.Binary(
            cast(Any, _word(op)),
            cast(Part, left).node,
            cast(Part, right).node,
            self._span(children),
        )
        return self._expr(node, children)

    def negate(self, children: Children) -> Part:
        """`-operand`."""
        return self._expr(ast.Negate(cast(Part, children[1]).node, self._span(children)), children)

    def number(self, children: Children) -> Part:
        """A literal."""
        node = ast.Number(_word(children[0]), self._span(children))
        operands.number(node)
        return self._expr(node, children)

    def ref(self, children: Children) -> Part:
        """A bare name."""
        return self._expr(self._ref(children[0]), children)

    def read(self, children: Children) -> Part:
        """`x[n, l]`."""
        name, axes = children
        node = ast.Read(self._ref(name), cast(Part, axes).node, self._span(children))
        return self._expr(node, children)

    def call(self, children: Children) -> Part:
        """`relu(x)`, `select(a < b, x, y)`."""
        name = self._ref(children[0])
        args = _nodes(children)
        operands.call(name, args)
        return self._expr(ast.Call(name.name, args, self._span(children)), children)

    def comparison(self, children: Children) -> Part:
        """`left < right`, an argument of `select`."""
        left, op, right = children
        node = ast.Comparison(
            cast(ast.Compare, _word(op)),
            cast(Part, left).node,
            cast(Part, right).node,
            self._span(children),
        )
        return self._expr(node, children)

    def group(self, children: Children) -> Part:
        """`( expr )`: the same node over more text."""
        return self._part(cast(Part, children[1]).node, children)

    # -- reductions --------------------------------------------------------------------------------

    def reduce(self, children: Children) -> Part:
        """`sum[k, l | equations] product else product`."""
        reducer, _, binders, relations, _, body, otherwise = children
        fallback = cast(Part, otherwise)
        checks.otherwise(_word(reducer), fallback.node, self._at(fallback, fallback))
        written = children if fallback.node is not None else children[:-1]
        node = ast.Reduce(
            cast(ast.Reducer, _word(reducer)),
            cast(Part, binders).node,
            cast(Part, relations).node,
            cast(Part, body).node,
            fallback.node,
            span=self._span(written),
        )
        return self._expr(node, written)

    def binders(self, children: Children) -> Part:
        """`k, l in 0..L`."""
        return self._row(children)

    def binder(self, children: Children) -> Part:
        """`k`, or `k in low..high`."""
        bounds = _nodes(children)
        for bound in bounds:
            operands.size(bound, "a range")
        node = ast.Binder(self._ref(children[0]), *bounds, span=self._span(children))
        return self._part(node, children)

    def relations(self, children: Children) -> Part:
        """`| equation, ...`, or nothing."""
        return self._row(children)

    def relation(self, children: Children) -> Part:
        """`left == right`."""
        left, right = _nodes(children)
        for side in (left, right):
            operands.size(side, "a relation")
        return self._part(ast.Relation(left, right, self._span(children)), children)

    def otherwise(self, children: Children) -> Part:
        """`else product`, or nothing."""
        if not children:
            return Part(None, 0, 0)
        return self._part(cast(Part, children[1]).node, children)

    # -- schedules ---------------------------------------------------------------------------------

    def schedule(self, children: Children) -> Part:
        """`schedule op for target { steps }`: a step is the words of one line."""
        _, op, _, target, _, *words, _ = cast(list[Token], children)
        lines: list[list[Token]] = []
        for word in words:
            if lines and lines[-1][-1].line == word.line:
                lines[-1].append(word)
            else:
                lines.append([word])
        steps = tuple(
            ast.Step(tuple(str(word) for word in line), self._span(line)) for line in lines
        )
        node = ast.Schedule(self._ref(op), self._ref(target), steps, self._span(children))
        return self._part(node, children)
