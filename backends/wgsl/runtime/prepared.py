"""A module on one opened device: pipelines, temporaries, and bind groups that are used again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from convdsl.backends.wgsl.module import WgslModule
from convdsl.backends.wgsl.runtime.memory import Block, rounded
from convdsl.backends.wgsl.runtime.plan import (
    Part,
    Plan,
    check_kernel,
    check_memory,
    make_plan,
)
from convdsl.backends.wgsl.runtime.session import Session
from convdsl.backends.wgsl.runtime.shader import remember
from convdsl.diagnostics import DeviceError

PLANS, GROUPS = 32, 16  # sets of sizes a module, and sets of buffers a plan, that are kept

Dispatch = tuple[Any, Any, tuple[int, int, int]]  # pipeline, bind group, workgroups


@dataclass(slots=True)
class Ready:
    """A plan, its uniform buffer and bytes, and the dispatches for sets of buffers seen lately."""

    plan: Plan
    uniform: tuple[Any, int]
    bound: OrderedDict[tuple[int, ...], list[Dispatch]] = field(default_factory=OrderedDict)


class Prepared:
    """All methods are called under the session's lock."""

    def __init__(self, session: Session, module: WgslModule, checks: bool) -> None:
        self._temps: dict[str, Block] = {}
        self._plans: OrderedDict[tuple[Part, tuple[int, ...]], Ready] = OrderedDict()
        self.session, self.module = session, module
        missing = sorted(module.features - session.features)
        if missing:
            raise DeviceError(
                f"'{module.name}' needs the WGSL feature {', '.join(missing)}, which "
                f"{session.name} does not have",
                help="use f32 tensors, or choose another adapter with CONVDSL_ADAPTER",
            )
        check_memory(module, session.info.limits, session.name)
        for kernel in module.kernels:
            check_kernel(kernel, session.info.limits, session.name)
        self._pipelines = [
            session.pipelines.pipeline(module.text, kernel, checks) for kernel in module.kernels
        ]
        self._layouts = [session.pipelines.layout(kernel.bindings) for kernel in module.kernels]

    def __del__(self) -> None:
        for block in self._temps.values():
            self.session.pool.give(block)

    def ready(self, part: Part, sizes: Mapping[str, int]) -> Ready:
        """The plan of a part for some sizes, made at their first use."""
        key = part, tuple([sizes[name] for name in self.module.sizes])
        found = self._plans.get(key)
        if found is not None:
            self._plans.move_to_end(key)
            return found
        session = self.session
        plan = make_plan(self.module, part, sizes, session.info.limits, session.name)
        for slot in (*plan.inputs, *plan.temps, *plan.outputs):
            session.pool.check(slot.nbytes, slot.name)
        return remember(self._plans, key, Ready(plan, self._uniform(plan)), PLANS)

    def bind(
        self, ready: Ready, inputs: Sequence[Block], outputs: Sequence[Block]
    ) -> list[Dispatch]:
        """The dispatches of a plan on these buffers, in order."""
        key = tuple([b.serial for b in (*outputs, *inputs)])
        found = ready.bound.get(key)
        if found is not None:
            ready.bound.move_to_end(key)
            return found
        self._grow(ready.plan)
        blocks = self._named(ready.plan, inputs, outputs)
        dispatches = []
        for step in ready.plan.steps:
            kernel = self.module.kernels[step.kernel]
            entries = []
            for b in kernel.bindings:
                buffer, size = ready.uniform if b.kind == "uniform" else blocks[b.buffer]
                resource = {"buffer": buffer, "offset": 0, "size": size}
                entries.append({"binding": b.index, "resource": resource})
            layout = self._layouts[step.kernel]
            group = self.session.gpu.create_bind_group(layout=layout, entries=entries)
            dispatches.append((self._pipelines[step.kernel], group, step.dispatch))
        return remember(ready.bound, key, dispatches, GROUPS)

    def submit(
        self,
        ready: Ready,
        inputs: Sequence[Block],
        outputs: Sequence[Block],
        kernels_a_submit: int = 0,
    ) -> None:
        """Hand one run to the queue, in groups of at most so many kernels (0: all in one)."""
        dispatches = self.bind(ready, inputs, outputs)
        most = kernels_a_submit or len(dispatches) or 1
        session = self.session
        for start in range(0, max(1, len(dispatches)), most):
            encoder = session.gpu.create_command_encoder()
            if start == 0 and ready.plan.cleared:
                self._clear(encoder, ready.plan, inputs, outputs)
            if dispatches:
                onto = encoder.begin_compute_pass()
                dispatch(onto, dispatches[start : start + most])
                onto.end()
            session.queue.submit([encoder.finish()])

    def _clear(
        self, encoder: Any, plan: Plan, inputs: Sequence[Block], outputs: Sequence[Block]
    ) -> None:
        blocks = self._named(plan, inputs, outputs)
        for name in plan.cleared:
            if name in blocks:
                buffer, size = blocks[name]
                encoder.clear_buffer(buffer, 0, size)

    def _named(
        self, plan: Plan, inputs: Sequence[Block], outputs: Sequence[Block]
    ) -> dict[str, tuple[Any, int]]:
        """Buffers by name, and the bytes of them that are bound."""
        slots, blocks = (*plan.inputs, *plan.outputs), (*inputs, *outputs)
        named = {s.name: (b.buffer, b.size) for s, b in zip(slots, blocks, strict=True)}
        temps = {s.name: (self._temps[s.name].buffer, rounded(s.nbytes)) for s in plan.temps}
        return named | temps

    def _grow(self, plan: Plan) -> None:
        """Make the temporaries large enough. All plans share them: runs follow each other."""
        for slot in plan.temps:
            block = self._temps.get(slot.name)
            if block is not None and block.size >= slot.nbytes:
                continue
            if block is not None:
                for ready in self._plans.values():
                    ready.bound.clear()
                self.session.pool.give(self._temps.pop(slot.name))
            self._temps[slot.name] = self.session.pool.take(slot.nbytes, slot.name)

    def _uniform(self, plan: Plan) -> tuple[Any, int]:
        if not plan.uniform:
            return None, 0
        from wgpu import BufferUsage

        usage = BufferUsage.UNIFORM | BufferUsage.COPY_DST
        buffer = self.session.gpu.create_buffer(size=len(plan.uniform), usage=usage)
        self.session.queue.write_buffer(buffer, 0, plan.uniform)
        return buffer, len(plan.uniform)


def dispatch(onto: Any, dispatches: Sequence[Dispatch]) -> None:
    """Record dispatches in a compute pass; WebGPU orders them by the buffers they share."""
    for pipeline, group, (x, y, z) in dispatches:
        onto.set_pipeline(pipeline)
        onto.set_bind_group(0, group)
        onto.dispatch_workgroups(x, y, z)
