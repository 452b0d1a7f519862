"""Conditions on integers: decided where ranges allow it, else text, as far outside as known."""

from __future__ import annotations

from convdsl.backends.wgsl.environment import Environment
from convdsl.backends.wgsl.index_text import IndexText
from convdsl.backends.wgsl.literals import i32_text
from convdsl.backends.wgsl.ranges import tighten
from convdsl.ir.expr import Pred
from convdsl.ir.index import Index, const

_NEVER = Pred("ge", const(-1))


class Conditions:
    """Decides conditions and makes text of them; `lane` is the variable of a whole vector loop."""

    def __init__(self, env: Environment, index: IndexText) -> None:
        self.env, self.index = env, index
        self.lane: str | None = None

    def decide(self, conditions: tuple[Pred, ...]) -> tuple[Pred, ...] | None:
        """`settle`, after resolving."""
        return self.settle(tuple(map(self._resolve, conditions)))

    def settle(self, resolved: tuple[Pred, ...]) -> tuple[Pred, ...] | None:
        """The conditions that are not certain, or None when one is certain to fail."""
        out: list[Pred] = []
        for pred in map(tighten, resolved):
            known = self.index.ranges.decide(pred)
            if known is False:
                return None
            if known is None:
                out.append(pred)
        return tuple(out)

    def _resolve(self, pred: Pred) -> Pred:
        return Pred(pred.kind, self.env.resolve(pred.index))

    def by_lane(self, conditions: tuple[Pred, ...]) -> tuple[tuple[Pred, ...], tuple[Pred, ...]]:
        """Conditions, resolved, that all lanes share, and, not resolved, the others."""
        lane = self.lane
        shared: list[Pred] = []
        own: list[Pred] = []
        for pred in conditions:
            if lane is None or lane not in pred.index.free:
                shared.append(self._resolve(pred))
                continue
            answers: set[tuple[Pred, ...] | None] = set()
            for n in range(4):
                with self.env.bind(lane, n):
                    answers.add(self.decide((pred,)))
            answer = answers.pop()
            if answers:
                own.append(pred)
            else:
                shared += [_NEVER] if answer is None else answer
        return tuple(shared), tuple(own)

    def condition(self, preds: tuple[Pred, ...]) -> str:
        """All of the conditions; two or more that an outer scope knows are tested there."""
        by_depth: dict[int, list[Pred]] = {}
        for pred in dict.fromkeys(preds):
            by_depth.setdefault(self.index.depths.of(pred.index), []).append(pred)
        parts: list[str] = []
        for depth, group in sorted(by_depth.items()):
            if depth < self.index.depth and len(group) > 1:
                parts.append(self._truth(depth, tuple(group)))
            else:
                parts += [self._condition(pred, self.index.depth) for pred in group]
        return " && ".join(parts)

    def _truth(self, depth: int, group: tuple[Pred, ...]) -> str:
        scope = self.index.scopes[depth]
        name = scope.truths.get(group)
        if name is None:
            text = " && ".join(self._condition(pred, depth) for pred in group)
            name = scope.truths[group] = self.index.names.fresh("inside")
            scope.block.line(f"let {name}: bool = {text};")
        return name

    def _condition(self, pred: Pred, depth: int) -> str:
        """A comparison, rearranged so that no side has a minus sign."""

        def side(index: Index) -> str:
            return self.index.value_at(index, depth, "at")

        terms = [(m, c) for m, c in pred.index.terms if m]
        plus = Index({m: c for m, c in terms if self.index.positive(m, c)})
        minus = Index({m: -c for m, c in terms if not self.index.positive(m, c)})
        number = pred.index.constant
        if pred.kind != "ge":
            sign = "==" if pred.kind == "eq" else "!="
            if not plus.terms:
                plus, minus, number = minus, plus, -number
            left, right = (plus + number, minus) if number > 0 else (plus, minus - number)
            return f"{side(left)} {sign} {side(right)}"
        if not plus.terms:
            return f"{side(minus)} < {i32_text(number + 1)}"
        if not minus.terms:
            return f"{side(plus)} >= {i32_text(-number)}"
        if number < 0:
            return f"{side(minus - (number + 1))} < {side(plus)}"
        return f"{side(plus + number)} >= {side(minus)}"
