"""The compiled variants of a kernel, one for each combination of sizes and absent inputs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from convdsl.budget import CAP
from convdsl.diagnostics import InternalError
from convdsl.machine.facts import TYPICAL, Machine
from convdsl.registry import backend
from convdsl.sema.emptiness import check_reductions
from convdsl.sema.instantiate import instantiate
from convdsl.sema.model import ResolvedOp
from convdsl.sema.without import without

if TYPE_CHECKING:
    from convdsl.backends.base import Executable
    from convdsl.passes.plan import Algorithm
    from convdsl.schedule.schedule import Schedule

CACHE = 64  # variants (combinations of sizes and absent inputs) kept for one kernel


@dataclass(frozen=True, slots=True)
class Options:
    """Everything that changes the text of a kernel, sizes apart.

    `fixed` are the sizes given at compile time, `dynamic` those that stay symbols in the text;
    `absent` are the inputs that no call can pass.
    """

    op: ResolvedOp
    text: str
    params: Mapping[str, int | float]
    target: str
    accuracy: str
    limits: str
    fixed: Mapping[str, int]
    dynamic: frozenset[str]
    absent: frozenset[str] = frozenset()
    algorithm: Algorithm | None = None
    schedule: Schedule | None = None
    cap: int = CAP
    machine: Machine = TYPICAL


Key = tuple[tuple[tuple[str, int], ...], frozenset[str]]


class Variants:
    """Compiled variants by the sizes in their text and the absent inputs; bounded, thread-safe."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._lock = Lock()
        self._made: OrderedDict[Key, Executable] = OrderedDict()
        self.latest: Executable | None = None

    def key(self, sizes: Mapping[str, int], absent: frozenset[str]) -> Key:
        static = {n: v for n, v in sizes.items() if n not in self._options.dynamic}
        return tuple(sorted(static.items())), absent

    def again(self, key: Key, executable: Executable) -> bool:
        """Whether this is (still) the variant of the key; as if it had been got."""
        if self.latest is executable:  # that one is never dropped
            return True
        with self._lock:
            if self._made.get(key) is not executable:
                return False
            self._made.move_to_end(key)
            self.latest = executable
            return True

    def get(self, sizes: Mapping[str, int], absent: frozenset[str]) -> Executable:
        key = self.key(sizes, absent)
        with self._lock:
            found = self._made.get(key)
            if found is None:
                found = self._made[key] = self._compile(dict(key[0]), absent)
                while len(self._made) > CACHE:
                    self._made.popitem(last=False)
            else:
                self._made.move_to_end(key)
            self.latest = found
            return found

    def facts(self, executable: Executable) -> tuple[dict[str, int], frozenset[str]]:
        """The sizes in an executable's text, and the inputs that it goes without."""
        with self._lock:
            for (static, absent), made in self._made.items():
                if made is executable:
                    return dict(static), absent
        raise InternalError("the variant is no longer kept")

    def _compile(self, sizes: Mapping[str, int], absent: frozenset[str]) -> Executable:
        from convdsl.backends.base import Request

        o = self._options
        op = without(o.op, absent)
        system = instantiate(op, o.params, sizes, absent)
        check_reductions(op, o.params, system)
        request = Request(
            system, o.accuracy, o.limits, o.algorithm, o.schedule, o.cap, o.machine
        )  # fmt: skip
        return backend(o.target).compile(request)
