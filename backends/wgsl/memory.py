"""Buffers as text: declarations, and the element or vec4 that an access means."""

from __future__ import annotations

from dataclasses import dataclass

from convdsl.backends.wgsl.environment import Environment
from convdsl.backends.wgsl.index_text import IndexText
from convdsl.backends.wgsl.vectors import Form, aligned, offset
from convdsl.diagnostics import InternalError
from convdsl.ir.expr import Access
from convdsl.ir.index import Index, as_name
from convdsl.ir.loop import Buffer

LANES = "xyzw"
LANE = "%lane"
"""The resolved name of the variable of a whole vector loop: it never reaches the text."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a buffer lives, and under which name."""

    buffer: Buffer
    name: str
    form: Form

    @property
    def extents(self) -> tuple[int, ...]:
        """The extents that are stored: numbers, thread dims left out."""
        out: list[int] = []
        for dim in self.buffer.dims[self.buffer.thread_dims :]:
            number = dim.as_int()
            if number is None:
                raise InternalError(f"local buffer {self.buffer.name} has the unknown extent {dim}")
            out.append(number)
        return tuple(out)

    @property
    def elements(self) -> int:
        """Elements of one thread (a register buffer) or of one workgroup."""
        count = 1
        for extent in self.extents:
            count *= extent
        return count

    @property
    def half(self) -> bool:
        """Whether elements are stored as f16; local buffers hold the rounded number as f32."""
        return self.buffer.dtype == "f16" and self.buffer.memory not in ("workgroup", "register")

    @property
    def element_type(self) -> str:
        scalar = "f16" if self.half else "i32" if self.buffer.dtype == "i32" else "f32"
        return f"vec4<{scalar}>" if self.form.vector else scalar

    @property
    def array_type(self) -> str:
        if self.buffer.memory not in ("workgroup", "register"):
            return f"array<{self.element_type}>"
        if self.rows:
            width = self.extents[-1] // (4 if self.form.vector else 1)
            return (
                f"array<array<{self.element_type}, {width}>, {self.elements // self.extents[-1]}>"
            )
        count = self.elements // 4 if self.form.vector else self.elements
        return f"array<{self.element_type}, {max(count, 1)}>"

    @property
    def rows(self) -> bool:
        """Whether it is an array of rows.

        A tile's row number is a constant once a loop is unrolled, and the place in the row does not
        change with it: then an implementation that clamps each index does so once, not once a read.
        """
        extents = self.extents if self.buffer.memory == "workgroup" else ()
        if len(extents) < 2 or min(extents) < 1:
            return False
        return not self.form.vector or extents[-1] % 4 == 0

    @property
    def bytes(self) -> int:
        """What a workgroup buffer takes of the limit: each is rounded up to 16 bytes."""
        return -(-max(self.elements, 1) * 4 // 16) * 16


class Memory:
    """All buffers that one kernel uses. Register variables are named when they are first used."""

    def __init__(self, places: dict[str, Place], env: Environment, index: IndexText) -> None:
        self.places, self._env, self._index = places, env, index
        self.threads: frozenset[str] = frozenset()
        self.used: set[str] = set()
        self._offsets: dict[int, tuple[Access, Index]] = {}
        self._quads: dict[Index, tuple[Index | None]] = {}
        self._split: dict[Index, tuple[Index, Index]] = {}
        self._registers: dict[tuple[str, int], str] = {}

    def place(self, access: Access) -> Place:
        found = self.places.get(access.tensor)
        if found is None:
            raise InternalError(f"no buffer {access.tensor} in this kernel")
        return found

    def element(self, access: Access) -> str:
        """The element, to be read or assigned."""
        place = self.place(access)
        row, index = self._split_row(access, place)
        if not place.form.vector:
            return self._reference(place, index, row)
        quad, rest = self._parts(index)
        whole, component = self._reference(place, quad, row), rest.as_int()
        if component is None:
            return f"{whole}[{self._index.value(rest)}]"
        return f"{whole}.{LANES[component]}"

    def vector(self, access: Access) -> str | None:
        """The four elements of a vector loop as one vec4, or None where they are not one."""
        place = self.place(access)
        if not place.form.vector:
            return None
        row, index = self._split_row(access, place)
        found = self._quads.get(index)
        if found is None:
            quad = index.without(LANE) // 4 if aligned(index, LANE) else None
            found = self._quads[index] = (quad,)
        return None if found[0] is None else self._reference(place, found[0], row)

    def literal(self, access: Access) -> float | None:
        """The number of a constant at an index that is a number by now."""
        place = self.place(access)
        if place.buffer.memory != "constant":
            return None
        at = self._split_row(access, place)[1].as_int()
        return None if at is None else float(place.buffer.values[at])

    def registers(self) -> list[str]:
        """The declarations of all register variables that were used."""
        out: list[str] = []
        for (name, _), text in sorted(self._registers.items()):
            place = self.places[name]
            out.append(
                f"var {text}: {place.element_type if place.form.named else place.array_type};"
            )
        return out

    def _parts(self, index: Index) -> tuple[Index, Index]:
        """The number of the vec4, and of the component in it."""
        found = self._split.get(index)
        if found is None:
            found = self._split[index] = (index // 4, index % 4)
        return found

    # -- places -----------------------------------------------------------------------------------
    def _split_row(self, access: Access, place: Place) -> tuple[Index | None, Index]:
        """The row of an array of rows, and the element's number in it or in the whole buffer."""
        if not place.rows:
            return None, self._env.resolve(self._offset(access, place))
        if access.dims != place.buffer.dims:
            raise InternalError(f"the tile {access.tensor} is viewed as {access.dims}")
        above = Access(access.tensor, access.index[:-1], access.dims[:-1])
        return self._env.resolve(above.offset()), self._env.resolve(access.index[-1])

    def _offset(self, access: Access, place: Place) -> Index:
        found = self._offsets.get(id(access))
        if found is None:
            skip = place.buffer.thread_dims
            if access.dims[:skip] != place.buffer.dims[:skip]:
                raise InternalError(
                    f"the thread dims of {access.tensor} are viewed as {access.dims}"
                )
            for index in map(self._env.resolve, access.index[:skip]):
                if as_name(index) not in self.threads and index != 0:
                    raise InternalError(f"{access.tensor} is indexed by {index}, not by a thread")
            found = self._offsets[id(access)] = (access, offset(access, skip))
        return found[1]

    def _reference(self, place: Place, index: Index, row: Index | None = None) -> str:
        """The unit (element, or vec4 of a vec4 buffer) with this number, in its row if it has one."""
        if row is not None:
            self.used.add(place.buffer.name)
            at = self._index.value(row, f"{place.name}_row")
            return f"{place.name}[{at}][{self._index.value(index, f'{place.name}_at')}]"
        if place.buffer.memory != "register":
            self.used.add(place.buffer.name)
            return f"{place.name}[{self._index.value(index, f'{place.name}_at')}]"
        number = index.as_int()
        if not place.form.named:
            name = self._registers.setdefault((place.buffer.name, 0), place.name)
            return f"{name}[{self._index.value(index, f'{place.name}_at')}]"
        if number is None:
            raise InternalError(f"the register {place.buffer.name}[{index}] is not constant")
        return self._registers.get((place.buffer.name, number)) or self._register(place, number)

    def _register(self, place: Place, number: int) -> str:
        extents = list(place.extents)
        if place.form.vector:
            extents[-1] //= 4
        digits: list[str] = []
        rest = number
        for extent in reversed(extents):
            digits.append(str(rest % extent))
            rest //= extent
        if rest or number < 0:
            raise InternalError(f"the register {place.buffer.name} has no element {number}")
        single = place.elements == (4 if place.form.vector else 1)
        name = place.name if single else "_".join([place.name, *reversed(digits)])
        text = self._registers[place.buffer.name, number] = self._index.names.fresh(name)
        return text
