"""Each verb before and after, as text: equations or loops, and the loop program that comes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from convdsl.diagnostics import CdslError
from convdsl.ir.text import print_piece, print_program
from convdsl.ir.verify import verify
from convdsl.lowering.host_kernels import lower_host
from convdsl.lowering.kernels import lower_wgsl
from convdsl.passes.layout import Axis
from convdsl.passes.normalise import normalise
from convdsl.passes.tiles import WorkgroupLimits
from convdsl.schedule.nest import Target
from convdsl.schedule.schedule import Schedule
from convdsl.schedule.show import show_nest
from convdsl.schedule.state import State
from convdsl.schedule.step import Compound, LoopStep, Step
from convdsl.schedule.verbs import COMPOUNDS, VERBS
from convdsl.schedule.verbs.columns import Columns
from convdsl.schedule.verbs.compute import Compute
from convdsl.schedule.verbs.fuse import Fuse
from convdsl.schedule.verbs.gather import Gather
from convdsl.schedule.verbs.inline import Inline
from convdsl.schedule.verbs.interior import Interior
from convdsl.schedule.verbs.layout import Layout
from convdsl.schedule.verbs.map import Map
from convdsl.schedule.verbs.materialise import Materialise
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.pack import Pack
from convdsl.schedule.verbs.pad import Pad
from convdsl.schedule.verbs.partial import Partial
from convdsl.schedule.verbs.phases import Phases
from convdsl.schedule.verbs.pipeline import Pipeline
from convdsl.schedule.verbs.reindex import Reindex
from convdsl.schedule.verbs.rfactor import Rfactor
from convdsl.schedule.verbs.solve import Solve
from convdsl.schedule.verbs.split import Split
from convdsl.schedule.verbs.stage import Stage
from convdsl.schedule.verbs.swizzle import Swizzle
from convdsl.schedule.verbs.taps import Taps
from convdsl.schedule.verbs.toeplitz import Toeplitz
from convdsl.schedule.verbs.toom import Toom
from convdsl.schedule.verbs.unroll import Unroll
from convdsl.schedule.verbs.vectorize import Vectorize
from convdsl.sema.instantiate import instantiate
from convdsl.sema.resolve import resolve
from convdsl.syntax.parser import parse

GOLDEN = Path(__file__).parents[1] / "golden" / "schedule"
MATMUL = "op mm(a: f32[M, K], b: f32[K, N]) -> y: f32[M, N] { y[m, n] = sum[k] a[m, k] * b[k, n] }"
UP = """
op up(x: f32[C, L], w: f32[C, K], b: f32[Q]) -> y: f32[Q] {
    y[o] = b[o] + sum[c, k, l | l*4 + k*2 == o] leaky_relu(x[c, l], 0.5) * w[c, k]
}"""
DOWN = """
op down(x: f32[C, L], w: f32[C, K]) -> y: f32[Q] where Q == L//3 {
    y[o] = sum[c, k, l | o*3 + k == l + 1] x[c, l] * w[c, k]
}"""
ROWS_UP = """
op up(x: f32[N, C, L], w: f32[C, K]) -> y: f32[N, LO]
where LO == (L - 1)*2 + K
{
    y[n, o] = sum[c, k, l | l*2 + k == o] x[n, c, l] * w[c, k]
}"""
WIDE_UP = """
op up(x: f32[C, L], w: f32[C, M, K]) -> y: f32[M, LO]
where LO == (L - 1)*2 + K
{
    y[m, o] = sum[c, k, l | l*2 + k == o] x[c, l] * w[c, m, k]
}"""
ROWS = "op rows(x: f32[M, K, J]) -> y: f32[M] { y[m] = 2*(max[k, j] abs(x[m, k, j]) else 1) }"
SNAKE = """
op snake(x: f32[C, T], a: f32[C], w: f32[C, M]) -> y: f32[M, T] {
    let h[c, t] = sin(a[c]*x[c, t])
    y[m, t] = sum[c] h[c, t] * w[c, m]
}"""
SOFTMAX = """
op softmax(x: f32[N, C]) -> y: f32[N, C] {
    let e[n, c] = exp(x[n, c])
    let norm[n] = sum[c] e[n, c]
    y[n, c] = e[n, c] / norm[n]
}"""
COPY = "op turn(x: f32[A, B]) -> y: f32[B, A] { y[b, a] = abs(x[a, b]) }"
THREADS = "map y: m -> grid, n -> thread"
TILED = f"""split y: k by 4 -> ko, ki tail pad
split y: ko by 4 -> kb, ks tail cut
{THREADS}
stage y: a at ks in workgroup
stage y: b at ks in workgroup"""
DEEP = f"split y: k by 4 -> ko, ki tail pad\n{THREADS}"

# name: text, sizes, the steps before, the steps shown one by one, what makes it run
CASES: dict[str, tuple[str, dict[str, int], str, str, str]] = {
    "gather": (UP, {"C": 2, "L": 5, "K": 3, "Q": 24}, "", "gather y", "map y: o -> thread"),
    "solve": (DOWN, {"C": 2, "L": 15, "K": 4}, "", "solve y for l", "map y: o -> thread"),
    "phases": (
        UP, {"C": 2, "L": 5, "K": 3, "Q": 24}, "", "phases y over o, k -> t, r, j",
        "map y: t -> thread\nmap y.hole: t_gap -> thread",
    ),
    "taps": (
        UP, {"C": 2, "L": 5, "K": 3, "Q": 24}, "", "taps y over o, k -> j", "map y: o -> thread",
    ),
    "stage_of_a_box": (
        UP, {"C": 2, "L": 8, "K": 8, "Q": 24},
        "taps y over o, k -> j\nsplit y: o by 4 -> q, e\norder y: q, c, j, e\nsplit y: j by 2 -> ja, ji",
        "stage y: x at ja in register\nstage y: w at ja in register",
        "map y: q -> thread\norder y: q, c, ja, ji, e\nunroll y: ji, e",
    ),
    "columns": (
        UP, {"C": 2, "L": 5, "K": 3, "Q": 24}, "", "columns y -> col",
        "gather y\nmap col: l -> thread\nmap y: o -> thread",
    ),
    "toeplitz": (
        UP, {"C": 2, "L": 5, "K": 3, "Q": 25}, "", "toeplitz y over o, l by 8 -> q, u, a",
        "gather y\nmap y: q -> thread",
    ),
    "toom": (
        UP, {"C": 2, "L": 5, "K": 3, "Q": 24}, "phases y over o, k -> t, r, j",
        "toom y over t, j by 3 -> xt, wt, zt: tile, u, z",
        """map xt: tile -> thread
           stage xt: x at u in register
           order xt: u, z
           unroll xt: u, z
           map wt: c -> thread
           map zt: tile -> thread
           map y: tile -> thread
           map y.hole: t_gap -> thread""",
    ),
    "reindex": (
        UP, {"C": 3, "L": 5, "K": 6, "Q": 27}, "phases y over o, k -> t, r, j",
        "reindex y: x by c, j, t -> xs",
        "map xs: t -> thread\nmap y: t -> thread\nmap y.hole: t_gap -> thread",
    ),
    "layout": (
        ROWS_UP, {"N": 2, "C": 3, "L": 5, "K": 8}, "phases y over o, k -> t, r, j",
        "layout y: x by c, t over n to 24 -> xs",
        """order y: c, j, n, t, r
           map y: n -> grid, t -> thread
           map xs: t -> thread
           unroll y: j
           stage y: xs at c in workgroup
           stage y: xs at j in register""",
    ),
    "window": (
        ROWS_UP, {"N": 2, "C": 3, "L": 5, "K": 8}, "phases y over o, k -> t, r, j",
        """layout y: x by c, t over n to 24 -> xs
           order y: n, t, r, c, j
           fuse y: n, t -> nt
           split y: nt by 8 -> tile, in tail pad
           split y: in by 4 -> lane, own
           order y: tile, lane, c, j, own, r""",
        """map xs: t -> thread
           map y: tile -> grid, lane -> thread
           stage y: xs at c in workgroup
           stage y: xs at c in register
           unroll y: j, own, r""",
    ),
    "interleave": (
        WIDE_UP, {"C": 3, "L": 8, "M": 8, "K": 2}, "phases y over o, k -> t, r, j",
        """order y: t, m, r, c
           fuse y: m, r -> mr
           split y: t by 4 -> lane, own
           split y: mr by 4 -> column, v
           order y: lane, column, c, own, v""",
        """map y: lane -> thread, column -> thread
           unroll y: own
           vectorize y: v""",
    ),
    "pack": (
        MATMUL, {"M": 6, "K": 10, "N": 8}, "", "pack y: a by 1, 0 -> a_packed",
        f"map a_packed: i0 -> thread\n{THREADS}",
    ),
    "rfactor": (
        MATMUL, {"M": 6, "K": 10, "N": 8}, "", "rfactor y: k by 4 -> part, y_part",
        f"map y_part: part -> grid, n -> thread\n{THREADS}",
    ),
    "rfactor_symbolic": (
        ROWS, {}, "", "rfactor y: k by 4 -> part, y_part",
        """split y_part: m by 64 -> mo, mi
           map y_part: mi -> thread, mo -> grid, part -> grid
           split y: m by 64 -> mo, mi
           map y: mo -> grid, mi -> thread""",
    ),
    "materialise": (
        SNAKE, {"C": 3, "T": 9, "M": 4}, "", "materialise h",
        "map h: t -> thread\nmap y: t -> thread",
    ),
    "inline": (
        SOFTMAX, {"N": 4, "C": 5}, "", "inline e", "map norm: n -> thread\nmap y: n -> thread"
    ),
    "pad": (
        MATMUL, {"M": 6, "K": 10, "N": 8}, "pack y: a by 1, 0 -> a2\npack y: b by 1, 0 -> b2",
        "pad y: k to 4", f"map a2: i0 -> thread\nmap b2: i1 -> thread\n{THREADS}",
    ),
    "split": (
        MATMUL, {"M": 10, "K": 10, "N": 8}, "",
        """split y: m by 4 -> mo, mi
           split y: k by 3 -> ko, ki tail cut
           split y: n by 2 -> no, ni tail perfect""",
        "map y: mo -> grid, ni -> thread",
    ),
    "split_symbolic": (
        MATMUL, {"M": 10}, "",
        """split y: n by 32 -> no, ni
           split y: k by 8 -> ko, ki tail pad""",
        "map y: m -> grid, ni -> thread",
    ),
    "split_of_a_copy": (
        COPY, {"A": 10, "B": 7}, "", "split y: a by 4 -> ao, ai tail cut", "map y: b -> thread"
    ),
    "tile": (
        MATMUL, {"M": 10, "K": 10, "N": 8}, "",
        "tile y: m by 4, n by 2 -> mo, no, mi, ni tail cut", "map y: mo -> grid, no -> thread",
    ),
    "fuse": (MATMUL, {"M": 5, "K": 3, "N": 7}, "", "fuse y: m, n -> mn", "map y: mn -> thread"),
    "order": (
        MATMUL, {"M": 5, "K": 3, "N": 4}, "map y: m -> thread", "order y: k, n", ""
    ),
    "map": (MATMUL, {"M": 5, "K": 3, "N": 4}, "", THREADS, ""),
    "swizzle": (
        MATMUL, {"M": 20, "K": 10, "N": 24},
        """split y: m by 4 -> mo, mi
           split y: n by 8 -> no, ni
           order y: mo, no, mi, ni
           map y: mo -> grid, no -> grid, mi -> thread, ni -> thread""",
        "swizzle y: mo, no by 2", "",
    ),
    "stage": (
        MATMUL, {"M": 6, "K": 10, "N": 8}, DEEP,
        """stage y: a at ko in workgroup
           stage y: b at ko in workgroup pad 1
           stage y: a at ki in register""",
        "",
    ),
    "pipeline": (
        MATMUL, {"M": 6, "K": 50, "N": 8}, TILED,
        "pipeline y: b, a",
        "",
    ),
    "pipeline_of_taps": (
        DOWN, {"C": 10, "L": 30, "K": 4},
        """solve y for l
           split y: o by 8 -> oo, oi tail pad
           split y: c by 4 -> co, ci tail pad
           order y: oo, oi, k, co, ci
           map y: oo -> grid, oi -> thread
           stage y: x at co in workgroup""",
        "pipeline y: x", "",
    ),
    "interior": (
        DOWN, {"C": 10, "L": 97, "K": 4},
        """solve y for l
           split y: o by 8 -> oo, oi tail pad
           split y: c by 4 -> co, ci tail pad
           order y: oo, oi, k, co, ci
           map y: oo -> grid, oi -> thread
           stage y: x at co in workgroup""",
        "interior y: x", "",
    ),
    "unroll": (MATMUL, {"M": 6, "K": 12, "N": 8}, DEEP, "unroll y: ki", ""),
    "vectorize": (
        MATMUL, {"M": 6, "K": 10, "N": 8},
        "split y: n by 4 -> no, ni\nmap y: m -> grid, no -> thread\norder y: k, ni",
        "vectorize y: ni", "",
    ),
    "partial": (MATMUL, {"M": 6, "K": 10, "N": 8}, DEEP, "partial y at ko", ""),
}  # fmt: skip

# The same for host programs.
HOST: dict[str, tuple[str, dict[str, int], str, str, str]] = {
    "map_for_numpy": (
        MATMUL, {"M": 10, "K": 200, "N": 7}, "",
        """order y: k, m, n
           split y: k by 64 -> ko, ki
           map y: ko -> host, ki -> gemm, m -> gemm, n -> gemm
           order y: ko, m, n, ki""",
        "",
    ),
    "map_to_workers": (
        UP, {"C": 2, "L": 50, "K": 9, "Q": 203},
        "phases y over o, k -> t, r, j\nsplit y: t by 8 -> to, ti",
        """order y: to, j, c, r, ti
           map y: to -> worker, j -> host, c -> host""",
        "",
    ),
    "compute_on_workers": (
        UP, {"C": 2, "L": 50, "K": 9, "Q": 203},
        "columns y -> col\nphases y over o, k -> t, r, j",
        """split y: t by 8 -> to, ti
           order y: to, j, ti, r
           map y: to -> worker, j -> host
           compute col at y: to""",
        "",
    ),
    "toeplitz_for_numpy": (
        DOWN, {"C": 2, "L": 50, "K": 5}, "",
        """toeplitz y over o, l by 4 -> q, u, a
           solve y for k
           reindex y: w by c, a, u -> w_blocks
           reindex y: x by q, c, a -> x_windows""",
        "map y: q -> gemm, u -> gemm, c -> gemm, a -> gemm",
    ),
    "partial_for_numpy": (
        MATMUL, {"M": 10, "K": 200, "N": 7}, "",
        """order y: k, m, n
           split y: k by 64 -> ko, ki
           map y: ko -> host, ki -> host
           partial y at ko""",
        "",
    ),
    "gather_for_numpy": (
        DOWN, {"C": 2, "L": 15, "K": 4}, "gather y", "order y: o\nmap y: o -> host", ""
    ),
    "compute": (
        UP, {"C": 2, "L": 50, "K": 9, "Q": 203},
        "columns y -> col\nphases y over o, k -> t, r, j",
        """split y: t by 8 -> to, ti
           order y: to, j, ti, r
           map y: to -> host, j -> host
           compute col at y: to""",
        "map col: l -> gemm, k -> gemm, c -> gemm",
    ),
    "compute_what_that_reads": (
        UP, {"C": 2, "L": 50, "K": 9, "Q": 203},
        "columns y -> col\nreindex col: x by l, c -> rows\nphases y over o, k -> t, r, j",
        """split y: t by 8 -> to, ti
           order y: to, j, ti, r
           map y: to -> host, j -> host
           compute col at y: to
           compute rows at y: to""",
        "map col: l -> gemm, k -> gemm, c -> gemm",
    ),
}  # fmt: skip


def _steps(text: str, op: str, target: str = "wgsl") -> tuple[Step, ...]:
    return Schedule.parse(f"schedule {op} for {target} {{\n{text}\n}}\n").steps


def _shown(state: State, step: Step) -> str:
    """The loops of a step on loops; the equations for one on relations."""
    if isinstance(step, LoopStep):
        return show_nest(state.nest(step.equation)) + "\n"
    return "".join(print_piece(piece, {}) for piece in state.pieces().values())


@pytest.mark.parametrize("name", [*CASES, *HOST])
def test_before_and_after(name: str, golden: Callable[[Path, str], None]) -> None:
    text, sizes, before, steps, after = (CASES | HOST)[name]
    target: Target = "numpy" if name in HOST else "wgsl"
    op = resolve(parse(text))
    first = Schedule(op.name, target, _steps(before, op.name, target))

    def state_of(schedule: Schedule) -> State:
        return schedule.replay(normalise(instantiate(op, {}, sizes), schedule.kept), complete=False)

    page: list[str] = []
    for step in _steps(steps, op.name, target):
        page += [_shown(state_of(first), step), f"\n-- {step}\n\n"]
        first = first.then(step)
    page += [_shown(state_of(first), step), "\n"]
    for step in _steps(after, op.name, target):
        first = first.then(step)
        page.append(f"-- {step}\n")
    state = state_of(first)
    limits = WorkgroupLimits(256, 16384)
    program = lower_host(state, {}) if target == "numpy" else lower_wgsl(state, limits)
    verify(program)
    golden(GOLDEN / f"{name}.txt", "".join([*page, "\n", print_program(program)]))


def test_every_verb_has_a_pair() -> None:
    shown = {
        step.verb
        for target, cases in (("wgsl", CASES), ("numpy", HOST))
        for _, _, _, steps, _ in cases.values()
        for step in _steps(steps, "x", target)
    }
    assert set(VERBS) == shown
    assert set(COMPOUNDS) <= set(CASES)
    assert {p.stem for p in GOLDEN.glob("*.txt")} >= {*CASES, *HOST}


@pytest.mark.parametrize("verb", [*VERBS.values(), *COMPOUNDS.values()])
def test_a_record_tells_what_it_does(verb: type[Step] | type[Compound]) -> None:
    """Immutable, with before -> after in its docstring, and with the form that it is written in."""
    assert verb.__dataclass_params__.frozen  # type: ignore[union-attr]
    text = verb.__doc__ or ""
    assert "before:" in text
    assert "after:" in text
    assert verb.form.startswith(f"{verb.verb} EQUATION")


def test_methods_make_the_same_steps() -> None:
    made = (
        Schedule("op")
        .materialise("h")
        .inline("e")
        .gather("y")
        .solve("y", "l")
        .phases("y", "o", "k", "t", "r", "j")
        .taps("y", "o", "k", "j")
        .columns("y", "col")
        .toeplitz("y", "o", "l", 32, "q", "u", "a")
        .toom("y", "t", "j", 4, ("xt", "wt", "zt"), ("tile", "u", "z"))
        .reindex("y", "x", ("c", "j", "t"), "xs")
        .layout("y", "x", ("c", ("t", "n", 24)), "xl")
        .pack("y", "w", (1, 0), "w_packed")
        .rfactor("y", "c", 64, "part", "y_part")
        .pad("y", "c", 16)
        .split("y", "c", 16, "co", "ci", tail="pad")
        .split("y", "m", 4, "mo", "mi")
        .fuse("y", ("n", "t"), "nt")
        .order("y", "nt", "mo", "mi")
        .map("y", {"nt": "grid", "mo": "thread"})
        .swizzle("y", "nt", "mo", 8)
        .stage("y", "x", "co", "workgroup", pad=1)
        .stage("y", "x", "ci", "register")
        .pipeline("y", "x")
        .interior("y", "x")
        .unroll("y", "ci", "mi")
        .vectorize("y", "mi")
        .partial("y", "co")
        .compute("col", "y", "n")
    )
    assert made.steps == (
        Materialise("h"), Inline("e"), Gather("y"), Solve("y", "l"),
        Phases("y", "o", "k", "t", "r", "j"), Taps("y", "o", "k", "j"), Columns("y", "col"),
        Toeplitz("y", "o", "l", 32, "q", "u", "a"),
        Toom("y", "t", "j", 4, ("xt", "wt", "zt"), ("tile", "u", "z")),
        Reindex("y", "x", ("c", "j", "t"), "xs"),
        Layout("y", "x", (Axis("c"), Axis("t", "n", 24)), "xl"),
        Pack("y", "w", (1, 0), "w_packed"), Rfactor("y", "c", 64, "part", "y_part"),
        Pad("y", "c", 16), Split("y", "c", 16, "co", "ci", "pad"),
        Split("y", "m", 4, "mo", "mi"),
        Fuse("y", ("n", "t"), "nt"), Order("y", ("nt", "mo", "mi")),
        Map("y", (("nt", "grid"), ("mo", "thread"))), Swizzle("y", "nt", "mo", 8),
        Stage("y", "x", "co", "workgroup", 1),
        Stage("y", "x", "ci", "register"), Pipeline("y", ("x",)), Interior("y", ("x",)),
        Unroll("y", ("ci", "mi")), Vectorize("y", "mi"), Partial("y", "co"),
        Compute("col", "y", "n"),
    )  # fmt: skip
    assert Schedule.parse(str(made)) == made
    assert {*VERBS, *COMPOUNDS} <= set(dir(Schedule))


def test_a_compound_form_is_its_steps() -> None:
    factors, outer, inner = {"m": 4, "n": 8}, ("mo", "no"), ("mi", "ni")
    made = Schedule("op").tile("y", factors, outer, inner, tail="pad")
    written = Schedule.parse(
        "schedule op for wgsl { tile y: m by 4, n by 8 -> mo, no, mi, ni tail pad\n }"
    )
    assert made == written
    assert made.steps == (
        Split("y", "m", 4, "mo", "mi", "pad"), Split("y", "n", 8, "no", "ni", "pad"),
        Order("y", ("mo", "no", "mi", "ni")),
    )  # fmt: skip
    assert Schedule.parse(str(made)) == made
    assert Schedule("op").tile("y", {"m": 4}, ["mo"], ["mi"]).steps == (
        Split("y", "m", 4, "mo", "mi"),
    )
    with pytest.raises(CdslError, match="E0601"):
        Schedule("op").tile("y", factors, outer, ("mi",))
