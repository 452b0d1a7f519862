"""Draws the right side of a statement: expressions over the indices in scope, with their bounds."""

from __future__ import annotations

from dataclasses import replace

from convdsl.syntax import ast
from tests.strategies.filters import draw_filter
from tests.strategies.head import VOLUME, Head, Tensor
from tests.strategies.trees import (
    HERE,
    Bound,
    Extent,
    Index,
    Value,
    binary,
    call,
    integer,
    number,
    read,
    ref,
)

Scope = tuple[Index, ...]
_MAX_INPUTS = 4
_COMPARES: tuple[ast.Compare, ...] = ("<", "<=", ">", ">=", "==", "!=")


class Values:
    """Draws values. `standing` collects the names that stand on axes of what was read."""

    def __init__(self, head: Head) -> None:
        self.head = head
        self.standing: set[str] = set()
        self.reductions = 0  # those left to draw

    # -- leaves ------------------------------------------------------------------------------------
    def leaf(self, kind: str, scope: Scope) -> Value:
        h = self.head
        choice = h.number(0, 9)
        if choice <= 5:
            found = self.read(kind, scope)
            if found is not None:
                return found
        if choice == 6 and kind == "f32":
            name = h.float_parameter()
            return Value(ref(name), Bound(int(abs(h.floats[name]) * 2), 1), "f32")
        if choice == 7 and kind == "f32":
            halves = h.number(-4, 4)
            return Value(number(halves / 2), Bound(abs(halves), 1), "f32")
        if choice == 8:
            name = h.pick([*h.sizes, *h.parameters])
            return Value(ref(name), Bound(max(abs(e[name]) for e in h.environments)), "int")
        value = h.number(-3, 3)
        return Value(number(value), Bound(abs(value)), "int")

    def read(self, kind: str, scope: Scope) -> Value | None:
        """A read of something declared, or of a new input; None where neither can be."""
        h = self.head
        known = [t for t in (*h.lets, *h.inputs) if t.kind == kind]
        if known and h.chance(60):
            found = self.read_of(h.pick(known), scope)
            if found is not None:
                return found
        if len(h.inputs) >= _MAX_INPUTS:
            return next((v for t in known if (v := self.read_of(t, scope))), None)
        return self.new_read(kind, [i for i in self.readable(scope) if h.chance(50)])

    def readable(self, scope: Scope) -> Scope:
        """Those that may stand on an axis of an input: no defined size in the extent."""
        defined = self.head.defined
        return tuple(
            i for i in scope if i.extent is not None and not defined.keys() & set(i.extent.factors)
        )

    def new_read(self, kind: str, indices: list[Index]) -> Value:
        """A new input that is read at these indices, in some order, some of them composite."""
        h = self.head
        order = list(indices)
        for at in range(len(order) - 1, 0, -1):
            other = at - h.number(0, at)
            order[at], order[other] = order[other], order[at]
        axes: list[tuple[Extent, ...]] = []
        places: list[tuple[str, ...]] = []
        while order:
            first = order.pop(0)
            assert first.extent is not None
            single = len(first.extent.factors) == 1
            if single and order and h.chance(25):
                second = order[0].extent
                if second is not None and len(second.factors) == 1:
                    axes.append((first.extent, second))
                    places.append((first.name, order.pop(0).name))
                    continue
            axes.append(tuple(Extent((f,)) for f in first.extent.factors))
            places.append((first.name,))
        if len(axes) > 4:
            axes, places = axes[:4], places[:4]
        dtype = "i32" if kind == "i32" else "f16" if h.chance(15) else "f32"
        default = h.number(-2, 2) if h.chance(15) else None
        tensor = Tensor(h.tensor_name(), dtype, tuple(axes), Bound(h.number(1, 4)), default)
        h.inputs.append(tensor)
        return self._stand(tensor, places)

    def read_of(self, tensor: Tensor, scope: Scope) -> Value | None:
        """A read at indices whose extents are those of the axes; None where there are none."""
        h = self.head
        places: list[tuple[str, ...]] = []
        for factors in tensor.axes:
            whole = sum(factors[1:], start=factors[0])
            ways: list[tuple[str, ...]] = [(i.name,) for i in scope if i.extent == whole]
            if len(factors) > 1:
                each = [[i.name for i in scope if i.extent == f] for f in factors]
                if all(each):
                    ways.append(tuple(h.pick(names) for names in each))
            if not ways:
                return None
            places.append(h.pick(ways))
        return self._stand(tensor, places)

    def _stand(self, tensor: Tensor, places: list[tuple[str, ...]]) -> Value:
        self.standing |= {name for place in places for name in place}
        return Value(read(tensor.name, places), tensor.bound, tensor.kind)

    # -- expressions -------------------------------------------------------------------------------
    def value(self, kind: str, scope: Scope, depth: int) -> Value:
        """An exact value of a kind (`int` adapts to both)."""
        h = self.head
        if depth <= 0:
            return self.leaf(kind, scope)
        choice = h.number(0, 15)
        if choice <= 3:
            return self.leaf(kind, scope)
        if choice <= 8 and self.reductions > 0:
            return self.reduction(kind, scope, depth)
        if choice <= 11:
            return self.binary(kind, scope, depth)
        if choice == 12:
            return self.select(kind, scope, depth)
        if choice == 13:
            return self.cast(kind, scope, depth)
        inner = self.value(kind, scope, depth - 1)
        name = h.pick(["relu", "abs", "-"])
        tree = ast.Negate(inner.tree, HERE) if name == "-" else call(name, inner.tree)
        # A sign before a number is the number's own: -(-1) prints and parses as it stands.
        return Value(tree, inner.bound, inner.kind)

    def binary(self, kind: str, scope: Scope, depth: int) -> Value:
        h = self.head
        a, b = self.value(kind, scope, depth - 1), self.value(kind, scope, depth - 1)
        joined = a.kind if b.kind == "int" else b.kind
        op = h.pick(["+", "-", "*", "max", "min"])
        if op == "*":
            product = a.bound * b.bound
            if product.exact:
                return Value(binary("*", a.tree, b.tree), product, joined)
            op = "max"
        if op in ("+", "-"):
            total = a.bound + b.bound
            if total.exact:
                return Value(binary(op, a.tree, b.tree), total, joined)
            op = "min"
        either = a.bound | b.bound
        if not either.exact:
            return a
        return Value(call(op, a.tree, b.tree), either, joined)

    def select(self, kind: str, scope: Scope, depth: int) -> Value:
        h = self.head
        of = h.pick([kind, "f32"])
        left, right = self.value(of, scope, depth - 1), self.leaf(of, scope)
        a, b = self.value(kind, scope, depth - 1), self.leaf(kind, scope)
        either = a.bound | b.bound
        if not either.exact:
            return a
        condition = ast.Comparison(h.pick(_COMPARES), left.tree, right.tree, HERE)
        tree = call("select", condition, a.tree, b.tree)
        return Value(tree, either, a.kind if b.kind == "int" else b.kind)

    def cast(self, kind: str, scope: Scope, depth: int) -> Value:
        h = self.head
        if kind == "i32":
            inner = self.value("f32", scope, depth - 1)
            whole = Bound(inner.bound.units >> inner.bound.shift)
            return Value(call("i32", inner.tree), whole, "i32")
        inner = self.value(h.pick(["f32", "i32"]), scope, depth - 1)
        if inner.kind == "f32" and inner.bound.half:
            return Value(call("f16", inner.tree), inner.bound, "f32")
        return Value(call("f32", inner.tree), inner.bound, "f32")

    # -- reductions --------------------------------------------------------------------------------
    def reduction(self, kind: str, scope: Scope, depth: int) -> Value:
        h = self.head
        self.reductions -= 1
        outside = self.standing
        self.standing = set()
        room = len(h.inputs) + 2 <= _MAX_INPUTS
        found = draw_filter(h, scope, self.readable(scope)) if room and h.chance(50) else None
        body: Value | None = None
        if found is not None:
            bound, relations = found.bound, found.relations
            body = self._times(kind, found.data, found.taps)
        else:
            bound = self._bound(scope)
            relations = self._relations(scope, bound)
            if room and h.chance(60):
                body = self._product(kind, (*scope, *bound), bound)
        inner = (*scope, *bound)
        if body is None:
            body = self.value(kind, inner, depth - 1)
        binders = tuple(self._binder(i) for i in bound)
        self.standing |= outside

        op = h.pick(["sum", "sum", "sum", "max", "min", "prod"])
        count = h.volume(bound)
        total = body.bound.reduced(op, count)
        if not total.exact:
            op, total = "max", body.bound
        otherwise = None
        if op in ("max", "min"):
            plain = not relations and all(i.low is None and i.extent is not None for i in bound)
            filled = plain and h.chance(50) and h.positive(i.extent for i in bound if i.extent)
            if not filled:
                otherwise = self.leaf(kind, scope)
                total = total | otherwise.bound
                if not total.exact:
                    otherwise, total = Value(number(0), Bound(0), "int"), body.bound
        tree = ast.Reduce(
            op,  # type: ignore[arg-type]
            binders,
            relations,
            body.tree,
            None if otherwise is None else otherwise.tree,
            span=HERE,
        )
        joined = body.kind if otherwise is None or otherwise.kind == "int" else otherwise.kind
        return Value(tree, total, joined)

    def _bound(self, scope: Scope) -> Scope:
        """One to three new indices; some over written ranges, some that stand nowhere."""
        h = self.head
        out: list[Index] = []
        for _ in range(h.pick([1, 2, 2, 3, 3])):
            name = h.index_name((*scope, *out))
            choice = h.number(0, 9)
            if choice == 9:
                low = h.number(-3, 2)
                high = binary("+", h.extent().tree, number(h.number(0, 2)))
                new = Index(name, None, number(low), high)
            else:
                new = Index(name, h.extent())
                if choice == 8:
                    new = self._narrowed(new)
            if h.volume((*scope, *out, new)) <= VOLUME:
                out.append(new)
        return tuple(out) or (Index(h.index_name(scope), Extent((1,))),)

    def _narrowed(self, index: Index) -> Index:
        """A written range inside of the axis's own."""
        h = self.head
        assert index.extent is not None
        least = min(index.extent.count(env) for env in h.environments)
        low = h.number(0, min(2, least))
        if h.chance(50):
            high: ast.Expr = number(h.number(low, least))
        else:
            off = h.number(0, min(1, least - low))
            high = binary("-", index.extent.tree, number(off)) if off else index.extent.tree
        return replace(index, low=number(low), high=high)

    def _binder(self, index: Index) -> ast.Binder:
        """With the range written where the body does not tell it."""
        low, high = index.low, index.high
        if low is None and index.name not in self.standing:
            assert index.extent is not None
            low, high = number(0), index.extent.tree
        return ast.Binder(ref(index.name), low, high, span=HERE)

    def _product(self, kind: str, scope: Scope, bound: Scope) -> Value:
        """A product of two reads with roles: each index in one of them or in both."""
        h = self.head
        a: list[Index] = []
        b: list[Index] = []
        for index in self.readable(scope):
            role = h.number(0, 3)
            if role == 0 and index in bound:
                role = 3
            a += [index] if role in (1, 3) else []
            b += [index] if role in (2, 3) else []
        return self._times(kind, tuple(a), tuple(b))

    def _times(self, kind: str, a: Scope, b: Scope) -> Value:
        """The product of two new inputs, each perhaps inside of a function."""
        h = self.head
        left, right = self.new_read(kind, list(a)), self.new_read(kind, list(b))
        for _ in range(2):
            if h.chance(20):
                left = Value(call(h.pick(["relu", "abs"]), left.tree), left.bound, left.kind)
            left, right = right, left
        return Value(binary("*", left.tree, right.tree), left.bound * right.bound, kind)

    # -- relations ---------------------------------------------------------------------------------
    def _relations(self, scope: Scope, bound: Scope) -> tuple[ast.Relation, ...]:
        h = self.head
        count = h.pick([0, 0, 0, 1, 1, 1, 1, 2, 2, 3])
        env = h.environments[0]
        point = {
            i.name: h.pick(span) if (span := list(i.span(env))) else 0 for i in (*scope, *bound)
        }
        return tuple(self._relation(scope, bound, point) for _ in range(count))

    def _relation(self, scope: Scope, bound: Scope, point: dict[str, int]) -> ast.Relation:
        """An affine equation that holds at `point` in the first call."""
        h = self.head
        own = [h.pick(bound) for _ in range(h.pick([1, 2, 2, 2]))]
        outer = [h.pick(scope)] if scope and h.chance(75) else []
        sides: list[list[ast.Expr]] = [[], []]
        total = 0
        for index in dict.fromkeys(own + outer):
            factor = self._coefficient(index in outer)
            side = 1 if (index in outer) != h.chance(20) else 0
            value = integer(factor, h.environments[0]) * point[index.name]
            total += value if side == 0 else -value
            term = ref(index.name)
            one = factor == number(1)
            sides[side].append(term if one else binary("*", term, factor))
        if total or h.chance(
            20
        ):  # left - right is `total`: add it on the right, or less on the left
            name = h.parameter(total) if h.chance(40) else None
            sides[1].append(number(total) if name is None else ref(name))
        left, right = (self._sum(side) for side in sides)
        return ast.Relation(left, right, HERE)

    def _coefficient(self, outer: bool) -> ast.Expr:
        h = self.head
        choice = h.number(0, 9)
        if outer and choice <= 4:
            return number(1)
        value = h.pick([1, 1, 2, 3, 4, 6, -1, -2, -3, 0])
        if choice <= 6:
            return number(value)
        if choice <= 8:
            name = h.parameter(value)
            return number(value) if name is None else ref(name)
        return ref(h.pick(h.sizes))

    def _sum(self, terms: list[ast.Expr]) -> ast.Expr:
        out: ast.Expr | None = None
        for term in terms:
            out = term if out is None else binary("+", out, term)
        return number(0) if out is None else out
