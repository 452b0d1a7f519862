"""`convdsl show`, and the options on schedules of the other commands."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

import convdsl
from tests.unit.cli_tools import Cli, cli

__all__ = ["cli"]

PRODUCT = """\
op product(a: f32[M, K], b: f32[K, N]) -> y: f32[M, N] {
    y[m, n] = sum[k] a[m, k] * b[k, n]
}
"""
THREADS = """\
schedule product for wgsl {
    split y: n by 64 -> n_tile, n_in
    map y: m -> grid, n_tile -> grid, n_in -> thread
}
"""
SIZES = ["-D", "M=96", "-D", "N=100", "-D", "K=64"]


@pytest.fixture
def product(cli: Cli, tmp_path: Path) -> Cli:
    (tmp_path / "product.cdsl").write_text(PRODUCT, "utf-8")
    (tmp_path / "threads.cdsl").write_text(THREADS, "utf-8")
    return cli


def test_the_last_loops(product: Cli) -> None:
    done = product("show", "product.cdsl", "--schedule", "threads.cdsl", *SIZES)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0] == "y:"
    assert [x.split()[1] for x in lines if x.strip().startswith("for ")] == [
        "m", "n_tile", "n_in", "k"
    ]  # fmt: skip
    assert "n = n_in + n_tile*64" in done.out
    assert "where n_in + n_tile*64 < 100 (tail guard)" in done.out


def test_all_steps(product: Cli) -> None:
    done = product("show", "product.cdsl", "--schedule", "threads.cdsl", "--steps", *SIZES)
    lines = done.out.splitlines()
    assert lines[0] == "before the first step"
    assert [x for x in lines if x and not x.startswith(" ")][1:] == [
        line.strip() for line in THREADS.splitlines()[1:-1]
    ]
    record = json.loads(
        product("show", "product.cdsl", "--schedule", "threads.cdsl", "--json", *SIZES).out
    )
    assert [s["given"] for s in record["steps"]] == [True, True]
    before, after = record["steps"][1]["changed"]["y"]
    assert "grid" not in before
    assert "grid" in after
    assert record["nests"]["y"] == after


def test_what_is_chosen(product: Cli) -> None:
    done = product("show", "product.cdsl")
    assert done.code == 0
    assert "grid" in done.out
    assert product("show", "scale.cdsl").out.startswith("y: one thread a result\n")
    host = product("show", "product.cdsl", "--target", "numpy")
    assert host.code == 0
    assert "gemm" in host.out
    assert product("show", "product.cdsl", "--steps", "--html", "x.html").code == 2


FILTER = """\
op filter(x: f32[C, L], w: f32[M, C, K]) -> y: f32[M, O]
where O == L - K + 1, K >= 1
{
    y[m, o] = sum[c, k, l | l == o + k] x[c, l] * w[m, c, k]
}

schedule filter for wgsl {
    solve y for l
    toom y over o, k by 6 -> xt, wt, zt: tile, u, z
}
"""


def test_the_accuracy_class(cli: Cli, tmp_path: Path) -> None:
    """F(6,3) is within `fast` alone, for every command that applies a schedule."""
    (tmp_path / "filter.cdsl").write_text(FILTER, "utf-8")
    sizes = [o for size in ("C=64", "L=40", "M=8", "K=3") for o in ("-D", size)]
    for command in (["show"], ["show", "--steps"], ["check"]):
        done = cli(*command, "filter.cdsl", *sizes)
        assert done.code == 1
        assert "E0673" in done.err
        assert 'or accuracy "fast"' in done.err
        done = cli(*command, "filter.cdsl", *sizes, "--accuracy", "fast")
        assert (done.code, done.err) == (0, "")


class Reader(HTMLParser):
    """Checks that elements nest, and keeps the text, ids and links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.text = ""
        self.places: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag != "meta":
            self.open.append(tag)
        for name, value in attrs:
            assert name not in ("src", "srcset", "onclick"), "nothing is loaded, nothing runs"
            if name == "id":
                self.places.add(value or "")
            if name == "href":
                self.links.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("sizes", [SIZES, []], ids=["numbers", "symbols"])
def test_page(product: Cli, tmp_path: Path, sizes: list[str]) -> None:
    done = product("show", "product.cdsl", *sizes, "--html", "page.html")
    assert (done.code, done.out) == (0, "page.html\n")
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "http" not in text.replace("https://www.w3.org", "")
    assert "@import" not in text
    assert "url(" not in text
    page = Reader()
    page.feed(text)
    assert page.open == []
    assert page.seen.count("svg") >= 3
    assert "script" not in page.seen
    assert page.links == [f"#{p}" for p in ("tiles", "text", "steps", "generated")]
    assert set(page.places) >= {"tiles", "text", "steps", "generated"}
    assert "y[m, n] = sum[k] a[m, k] * b[k, n]" in page.text
    assert "@compute @workgroup_size" in page.text
    for line in product("compile", "product.cdsl", *sizes, "--emit", "schedule").out.splitlines():
        assert line.strip() in page.text


def test_page_of_what_has_no_tiles(product: Cli, tmp_path: Path) -> None:
    for name in ("scale", "pool"):
        more = ["-D", "width=3"] if name == "pool" else []
        assert product("show", f"{name}.cdsl", *more, "--html", "page.html").code == 0
        page = Reader()
        page.feed((tmp_path / "page.html").read_text("utf-8"))
        assert page.open == []
        assert "Every thread computes one result." in page.text


def test_text_is_escaped(product: Cli, tmp_path: Path) -> None:
    text = PRODUCT.replace("    y[", "    # <script>alert(1)</script> & more\n    y[")
    (tmp_path / "odd.cdsl").write_text(text.replace("sum[k] a", "sum[k] select(1 < 2, 1, 0) * a"))
    done = product("show", "odd.cdsl", *SIZES, "--html", "page.html")
    assert done.code == 0, done.err
    page = Reader()
    page.feed((tmp_path / "page.html").read_text("utf-8"))
    assert "script" not in page.seen
    assert "<script>alert(1)</script> & more" in page.text
    assert "select(1 < 2" in page.text


@pytest.mark.parametrize("name", ["product", "fir", "scale"])
@pytest.mark.parametrize("sizes", [True, False], ids=["numbers", "symbols"])
def test_what_was_chosen_can_be_given_back(
    product: Cli, tmp_path: Path, name: str, sizes: bool
) -> None:
    numbers = {
        "product": SIZES,
        "fir": ["-D", "N=32", "-D", "L=100", "-D", "K=40", "-D", "stride=2"],
        "scale": ["-D", "N=7"],
    }
    given = numbers[name] if sizes else []
    first = product("compile", f"{name}.cdsl", *given, "-o", "a")
    assert f"a/{name}.schedule.cdsl" in first.out.splitlines()
    file = tmp_path / "a" / f"{name}.schedule.cdsl"
    again = product("compile", f"{name}.cdsl", *given, "--schedule", str(file), "-o", "b")
    assert again.code == 0, again.err
    for made in (f"{name}.wgsl", f"{name}.schedule.cdsl"):
        assert (tmp_path / "a" / made).read_bytes() == (tmp_path / "b" / made).read_bytes()
    assert product("fmt", "--check", str(file)).code == 0
    emitted = product("compile", f"{name}.cdsl", *given, "--emit", "schedule")
    assert emitted.out == file.read_text("utf-8")


def test_options_of_compile_and_run(product: Cli) -> None:
    given = ["product.cdsl", "--schedule", "threads.cdsl", *SIZES]
    done = product("compile", *given, "--emit", "schedule")
    assert done.out == THREADS
    passes = product("compile", *given, "--print-after", "schedule", "--print-after", "lower")
    assert f"-- after schedule --\n{THREADS}" in passes.err
    assert "-- after lower --" in passes.err
    plan = product("compile", *given, "--emit", "plan").out
    assert "tiles 1x64, 1x1 a thread" in plan
    assert "as the schedule says" in plan
    missing = product("compile", "fir.cdsl", "--schedule", "threads.cdsl")
    assert "there is no schedule of `fir` for wgsl in threads.cdsl" in missing.err
    other = product("run", *given, "--random", "a,b")
    assert "E0627" in other.err


@pytest.mark.gpu
def test_run_with_a_schedule(product: Cli) -> None:
    done = product(
        "run", "product.cdsl", "--schedule", "threads.cdsl", *SIZES, "--random", "a,b",
        "--target", "wgsl", "--check",
    )  # fmt: skip
    assert done.code == 0, done.err
    assert "as the schedule says" in done.out
    assert "relative L2 error" in done.out


def test_saved_kernels_keep_the_schedule(tmp_path: Path) -> None:
    sizes = {"M": 96, "N": 100, "K": 64}
    kernel = convdsl.compile(PRODUCT, target="wgsl", sizes=sizes, schedule=THREADS)
    chosen = convdsl.compile(PRODUCT, target="wgsl", sizes=sizes)
    assert kernel.source != chosen.source
    kernel.save(tmp_path / "a")
    record = json.loads((tmp_path / "a" / "manifest.json").read_text())
    assert record["schedule"] == record["applied"] == THREADS
    again = convdsl.load_kernel(tmp_path / "a")
    assert (again.source, again.schedule) == (kernel.source, THREADS)
    again.save(tmp_path / "b")
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()
    chosen.save(tmp_path / "c")
    record = json.loads((tmp_path / "c" / "manifest.json").read_text())
    assert record["schedule"] is None
    assert record["applied"] == chosen.schedule
    (tmp_path / "c" / "product.schedule.cdsl").write_text(THREADS)
    with pytest.raises(convdsl.CdslError, match="--schedule FILE") as caught:
        convdsl.load_kernel(tmp_path / "c")
    assert caught.value.code == "E0362"


def test_a_block_in_the_program_is_saved_with_it(tmp_path: Path) -> None:
    sizes = {"M": 96, "N": 100, "K": 64}
    kernel = convdsl.compile(f"{PRODUCT}\n{THREADS}", target="wgsl", sizes=sizes)
    assert kernel.schedule == THREADS
    kernel.save(tmp_path)
    assert convdsl.load_kernel(tmp_path).source == kernel.source
