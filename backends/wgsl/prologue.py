"""The first lines of an entry point: the sizes, ids and grid variables that its body uses."""

from __future__ import annotations

from convdsl.backends.wgsl.conditions import Conditions
from convdsl.backends.wgsl.environment import Environment
from convdsl.backends.wgsl.grid import AXES, NUMBER, GridPlan
from convdsl.backends.wgsl.index_text import IndexText
from convdsl.ir.expr import Pred, Var
from convdsl.ir.index import Index, as_name, const, sym

_AXIS = {name: "xyz"[n] for n, name in enumerate(AXES)}
_BUILTINS = ("workgroup_id", "num_workgroups", "local_invocation_id")


class Prologue:
    """Binds the names that a kernel's body may use, and afterwards declares those that it did."""

    def __init__(
        self, env: Environment, index: IndexText, sizes: dict[str, str], plan: GridPlan
    ) -> None:
        self._env, self._index, self._plan = env, index, plan
        self._head = IndexText(index.names, index.ranges, index.depths, index.helpers)
        self._lines: dict[str, str] = {}  # a declared name -> its declaration
        self._source: dict[str, str] = {}  # a declared name -> the builtin it is read from
        self._grid: list[tuple[str, Index]] = []
        self._sizes: set[str] = set()
        self.uses_sizes = False
        self._parameters = {b: index.names.fresh(b) for b in _BUILTINS}
        for size, field in sizes.items():
            name = index.names.fresh(size)
            self._lines[name] = f"let {name}: i32 = {field};"
            env.values[size] = sym(name)
            self._sizes.add(name)

    def grid(self, loops: tuple[Var, ...]) -> None:
        """Names for grid variables, and ids where a variable is more than one id."""
        single = {as_name(value): name for name, value in self._plan.values}
        for axis, part in _AXIS.items():
            name = self._id(single.get(axis, axis), "workgroup_id", part)
            extent = self._plan.dispatch[AXES.index(axis)].as_int()
            self._bind(name, None if extent is None else const(extent))
            self._env.values[axis] = sym(name)
        x, y = (self._env.resolve(sym(axis)) for axis in AXES[:2])
        row = self._id("wg_row", "num_workgroups", "x")
        self._bind(row, None)
        name = self._index.names.fresh(NUMBER)
        self._bind(name, None)
        self._grid.append((name, x + y * sym(row)))
        self._env.values[NUMBER] = sym(name)
        extents = {var.name: var.high for var in loops}
        for loop, value in self._plan.values:
            resolved = self._env.resolve(value)
            if as_name(resolved) is None and resolved.as_int() is None:
                name = self._index.names.fresh(loop)
                self._bind(name, self._env.resolve(extents[loop]))
                self._grid.append((name, resolved))
                resolved = sym(name)
            self._env.values[loop] = resolved

    def threads(self, shape: tuple[int, ...]) -> tuple[str, ...]:
        """Names of the thread ids for a nest of this shape, outermost first."""
        out: list[str] = []
        for axis, extent in zip("xyz", reversed(shape), strict=False):
            name = self._id(f"t{axis}", "local_invocation_id", axis)
            self._bind(name, const(extent))
            out.append(name)
        return tuple(reversed(out))

    def declarations(self) -> tuple[list[str], list[str], str]:
        """The parameters, the lines, and the condition for having work (or "")."""
        guards = [Pred(p.kind, self._env.resolve(p.index)) for p in self._plan.guards]
        scope = self._head.scopes[0]
        needed = self._index.used.union(*(g.index.free for g in guards))
        for name, value in reversed(self._grid):
            if name in needed:
                needed |= value.free
        for name, value in self._grid:
            if name in needed:
                scope.block.line(f"let {name}: i32 = {self._head.direct(value)};")
        guard = Conditions(self._env, self._head).condition(tuple(guards))
        used = self._index.used | self._head.used
        self.uses_sizes = not self._sizes.isdisjoint(used)
        lines = [line for name, line in self._lines.items() if name in used]
        lines += [item for item in scope.block.items if isinstance(item, str)]
        sources = {self._source[name] for name in used if name in self._source}
        parameters = [
            f"@builtin({b}) {name}: vec3<u32>"
            for b, name in self._parameters.items()
            if b in sources
        ]
        return parameters, lines, guard

    def _id(self, hint: str, builtin: str, part: str) -> str:
        name = self._index.names.fresh(hint)
        self._lines[name] = f"let {name}: i32 = i32({self._parameters[builtin]}.{part});"
        self._source[name] = builtin
        return name

    def _bind(self, name: str, high: Index | None) -> None:
        self._index.ranges.bind(name, const(0), high)
