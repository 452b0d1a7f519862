"""A loop program as one WGSL module: header, sizes, buffers, helpers, one entry point a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from convdsl.backends.wgsl.checks import (
    check_binding,
    check_buffers,
    check_storage,
    check_workgroup,
)
from convdsl.backends.wgsl.functions import Helpers
from convdsl.backends.wgsl.kernel import EntryPoint, entry_point
from convdsl.backends.wgsl.literals import f32_text, rounded
from convdsl.backends.wgsl.memory import Place
from convdsl.backends.wgsl.module import Binding, Limits, WgslKernel, WgslModule
from convdsl.backends.wgsl.names import Names
from convdsl.backends.wgsl.threads import thread_shape, workgroup_size
from convdsl.backends.wgsl.usage import Usage, free_sizes, usage
from convdsl.backends.wgsl.vectors import Form, forms
from convdsl.diagnostics import InternalError
from convdsl.ir.folding import folds
from convdsl.ir.index import Index
from convdsl.ir.loop import Buffer, Kernel, LoopProgram


def emit_module(
    program: LoopProgram, limits: Limits, shapes: Mapping[str, tuple[Index, ...]] | None = None
) -> WgslModule:
    """The module of a program, or the `CdslError` that says which limit it breaks.

    `shapes` are those of the tensors that users see, for headers and messages.
    """
    return _Module(program, limits, shapes or {}).build()


@dataclass(frozen=True, slots=True)
class _Variable:
    """What a buffer is in one kernel; kernels that agree share a variable, others alias it."""

    buffer: str
    written: bool
    vector: bool


class _Module:
    def __init__(
        self, program: LoopProgram, limits: Limits, shapes: Mapping[str, tuple[Index, ...]]
    ) -> None:
        self._program, self._limits, self._shapes = program, limits, shapes
        self._helpers = Helpers()
        self._names = Names()
        Helpers.reserve(self._names)
        free = free_sizes(program)
        symbolic = bool(free)
        names = [*program.sizes, *(name for name, _ in program.definitions)]
        if unknown := sorted(free.difference(names)):
            raise InternalError(f"program {program.name} uses the unknown sizes {unknown}")
        self._uniforms = tuple(names) if symbolic else ()
        self._uniform = self._names.fresh("sizes") if symbolic else ""
        self._struct = self._names.fresh("Sizes") if symbolic else ""
        fields = Names()
        self._fields = {name: fields.fresh(name) for name in self._uniforms}
        self._buffers = tuple(b for b in program.buffers if b.memory != "constant")
        self._usages = [usage(kernel, program) for kernel in program.kernels]
        self._globals = self._name_globals()

    def build(self) -> WgslModule:
        for buffer in self._buffers:
            check_binding(buffer, self._shape(buffer), self._limits)
        entries = {k.name: self._names.fresh(k.name) for k in self._program.kernels}
        local = [self._locals(kernel) for kernel in self._program.kernels]
        kernels: list[WgslKernel] = []
        body: list[str] = []
        named: set[str] = set()
        for kernel, used, places in zip(self._program.kernels, self._usages, local, strict=True):
            point = self._kernel(kernel, entries[kernel.name], used, places)
            kernels.append(
                WgslKernel(
                    kernel.name,
                    entries[kernel.name],
                    self._bindings(used, point),
                    point.workgroup,
                    point.dispatch,
                )
            )
            named |= point.used
            body += ["", *self._kernel_text(kernel, point, places)]
        features = frozenset({"shader-f16"}) if self._uses_f16() else frozenset[str]()
        text = [*self._header(kernels), *self._declarations(), *self._constants(named)]
        for helper in self._helpers.texts():
            text += ["", *helper.split("\n")]
        return WgslModule(
            name=self._program.name,
            text="\n".join([*text, *body]) + "\n",
            uniforms=self._uniforms,
            sizes=self._program.sizes,
            definitions=self._program.definitions,
            buffers=self._buffers,
            kernels=tuple(kernels),
            limits=self._limits,
            features=features,
            shapes=self._shapes,
            folds=folds(self._program),
        )

    # -- names and numbers of global buffers ------------------------------------------------------
    def _name_globals(self) -> dict[_Variable, Place]:
        """The variables of each buffer: written ones first, scalars first."""
        out: dict[_Variable, Place] = {}
        for buffer in self._program.buffers:
            wanted = {_variable(u, buffer) for u in self._usages if u.uses(buffer.name)}
            for written in (True, False):
                for vector in (False, True):
                    variable = _Variable(buffer.name, written, vector)
                    if variable not in wanted:
                        continue
                    name = buffer.name
                    if not written and any(v.written for v in wanted):
                        name += "_in"
                    if vector and _Variable(buffer.name, written, False) in wanted:
                        name += "_vec4"
                    form = Form(vector=vector, named=False)
                    out[variable] = Place(buffer, self._names.fresh(name), form)
        return out

    def _shape(self, buffer: Buffer) -> tuple[Index, ...]:
        return self._shapes.get(buffer.name, buffer.dims)

    def _binding(self, buffer: Buffer) -> int:
        return self._buffers.index(buffer) + bool(self._uniforms)

    def _bindings(self, used: Usage, point: EntryPoint) -> tuple[Binding, ...]:
        out = [Binding(0, "", "uniform")] if point.sizes else []
        for buffer in self._buffers:
            if buffer.name not in point.used:
                continue
            if buffer.name in used.writes:
                out.append(Binding(self._binding(buffer), buffer.name, "read_write"))
            else:
                out.append(Binding(self._binding(buffer), buffer.name, "read"))
        return tuple(out)

    def _uses_f16(self) -> bool:
        return any(place.half for place in self._globals.values())

    # -- kernels ----------------------------------------------------------------------------------
    def _locals(self, kernel: Kernel) -> dict[str, Place]:
        form = forms(kernel)
        out: dict[str, Place] = {}
        for buffer in kernel.locals:
            shared = buffer.memory == "workgroup"
            name = self._names.fresh(buffer.name) if shared else buffer.name
            out[buffer.name] = Place(buffer, name, form[buffer.name])
        return out

    def _kernel(
        self, kernel: Kernel, entry: str, used: Usage, local: dict[str, Place]
    ) -> EntryPoint:
        limits = self._limits
        buffers = [b for b in self._program.buffers if used.uses(b.name)]
        check_buffers(kernel.name, [b for b in buffers if b in self._buffers], limits)
        check_workgroup(kernel.name, workgroup_size(thread_shape(kernel)), limits)
        check_storage(
            kernel.name, [p for p in local.values() if p.buffer.memory == "workgroup"], limits
        )
        places = {b.name: self._globals[_variable(used, b)] for b in buffers}
        sizes = {name: f"{self._uniform}.{field}" for name, field in self._fields.items()}
        places.update(local)
        return entry_point(kernel, entry, places, sizes, self._names, self._helpers, limits)

    def _kernel_text(self, kernel: Kernel, point: EntryPoint, local: dict[str, Place]) -> list[str]:
        shared = [p for p in local.values() if p.buffer.memory == "workgroup"]
        lines = [f"var<workgroup> {p.name}: {p.array_type};" for p in shared]
        if lines:
            lines.append("")
        title = f"{kernel.name}: {kernel.comment}" if kernel.comment else kernel.name
        lines.append(_comment(title))
        return [*lines, *point.lines]

    # -- module text ------------------------------------------------------------------------------
    def _header(self, kernels: list[WgslKernel]) -> list[str]:
        buffers = [
            f"{b.name}: {b.dtype}[{', '.join(map(str, self._shape(b)))}]" for b in self._buffers
        ]
        lines = [self._program.name]
        lines += [f"  {b.memory} {t}" for b, t in zip(self._buffers, buffers, strict=True)]
        lines += [f"  {name} = {value}" for name, value in self._program.definitions]
        for kernel in kernels:
            size = " x ".join(map(str, kernel.workgroup))
            count = " x ".join(map(str, kernel.dispatch))
            lines.append(f"{kernel.entry}: {count} workgroups of {size} threads")
        return [_comment(line) for line in lines]

    def _declarations(self) -> list[str]:
        lines: list[str] = []
        if self._uses_f16():
            lines += ["enable f16;"]
        lines.append("")
        if self._uniforms:
            lines += [f"struct {self._struct} {{"]
            lines += [f"  {field}: i32," for field in self._fields.values()]
            lines += [
                "}",
                "",
                f"@group(0) @binding(0) var<uniform> {self._uniform}: {self._struct};",
            ]
        for variable, place in self._globals.items():
            if place.buffer.memory == "constant":
                continue
            access = "read_write" if variable.written else "read"
            lines.append(
                f"@group(0) @binding({self._binding(place.buffer)}) "
                f"var<storage, {access}> {place.name}: {place.array_type};"
            )
        return lines

    def _constants(self, named: set[str]) -> list[str]:
        """The arrays of the constants that some text indexes by what is no number."""
        lines: list[str] = []
        for place in self._globals.values():
            buffer = place.buffer
            if buffer.memory == "constant" and buffer.name in named:
                numbers = ", ".join(f32_text(rounded(float(v))) for v in buffer.values)
                lines.append(f"const {place.name} = array<f32, {len(buffer.values)}>({numbers});")
        return lines


def _variable(used: Usage, buffer: Buffer) -> _Variable:
    return _Variable(buffer.name, buffer.name in used.writes, buffer.name in used.vectors)


def _comment(text: str) -> str:
    """One comment line, whatever the text."""
    indent = " " * (len(text) - len(text.lstrip(" ")))
    return f"// {indent}{' '.join(text.split())}"
