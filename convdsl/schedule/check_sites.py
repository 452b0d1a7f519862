"""What must hold of equations that are computed inside others, once all steps are taken."""

from __future__ import annotations

from convdsl.schedule.check import refuse
from convdsl.schedule.nest import Nest
from convdsl.schedule.show import shown_names
from convdsl.schedule.state import State, is_read_at, readers_of


def check_sites(state: State) -> None:
    """CdslError for a tensor that is computed in a loop that has gone, or by threads in threads."""
    for equation, site in state.sites.items():
        nest = state.nest(site.reader)
        found = next((x for x in nest.loops if x.name == site.loop), None)
        if found is None or not found.on_host:
            why = "is gone" if found is None else f"is mapped to {found.level}"
            refuse(
                site.reader, nest, "E0672",
                f"`{equation}` is computed at `{site.loop}`, which {why}",
                found.name if found is not None else None,
                f"put `compute {equation} at {site.reader}: ...` after that step, at a host loop",
            )  # fmt: skip
        if not is_read_at(state, equation, site):
            shown = shown_names([f"`{n}`" for n in readers_of(state, equation)])
            refuse(
                site.reader, nest, "E0672",
                f"`{equation}` is computed at `{site.loop}`, and read by {shown} elsewhere",
                site.loop,
                f"`compute` what reads it at `{site.reader}: {site.loop}`, too",
            )  # fmt: skip
    for equation in state.sites:
        around = _worker_around(state, equation)
        for label, nest in state.nests.items():
            if around is not None and label.split(".")[0] == equation:
                _check_inside(label, nest, *around)


def _check_inside(label: str, nest: Nest, reader: str, around: str) -> None:
    """What is computed in a worker loop has none of its own."""
    loop = next((x for x in nest.loops if x.level == "worker"), None)
    if loop is not None:
        refuse(
            label, nest, "E0680",
            f"it is computed in the worker loop `{around}` of `{reader}`, and `{loop.name}` is "
            "mapped to worker", loop.name,
            f"`map {label}: {loop.name} -> host`, or `map {reader}: {around} -> host`",
        )  # fmt: skip


def _worker_around(state: State, equation: str) -> tuple[str, str] | None:
    """The nest and the worker loop in which an equation is computed, by way of others or not."""
    site = state.sites.get(equation)
    if site is None:
        return None
    nest = state.nest(site.reader)
    outside = nest.loops[: nest.place(site.loop) + 1]
    found = next((x.name for x in outside if x.level == "worker"), None)
    if found is not None:
        return site.reader, found
    return _worker_around(state, site.reader.split(".")[0])
