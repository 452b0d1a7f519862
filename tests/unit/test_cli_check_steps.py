"""`convdsl check` of schedules: what is refused, what is warned of, and what is left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.cli_tools import Cli, cli
from tests.unit.test_cli_show import PRODUCT, SIZES, THREADS

__all__ = ["cli"]


@pytest.fixture
def check(cli: Cli, tmp_path: Path) -> Cli:
    """Check product.cdsl with a block of these steps behind it."""

    def call(block: str, *args: str) -> object:
        (tmp_path / "product.cdsl").write_text(f"{PRODUCT}\n{block}", "utf-8")
        return cli("check", "product.cdsl", *args)

    return call  # type: ignore[return-value]


VECTORS = [
    "split y: n by 64 -> n_tile, n_in",
    "split y: n_in by 4 -> n_lane, n_vec",
    "split y: m by 2 -> m_tile, m_in",
    "split y: k by 16 -> k_tile, k_in",
    "order y: m_tile, n_tile, m_in, n_lane, k_tile, k_in, n_vec",
    "map y: m_tile -> grid, n_tile -> grid, m_in -> thread, n_lane -> thread",
    "vectorize y: n_vec",
]


def block(*steps: str) -> str:
    return "schedule product for wgsl {\n" + "".join(f"    {s}\n" for s in steps) + "}\n"


def test_right(check: Cli) -> None:
    done = check(THREADS)
    assert (done.code, done.err) == (0, "")
    said = "product.cdsl: schedule product for wgsl is right"
    assert done.out.splitlines()[1].startswith(f"{said}, as far as its verbs: it is applied when")
    applied = check(THREADS, *SIZES)
    assert (applied.code, applied.err) == (0, "")
    assert applied.out.splitlines()[1] == said


def test_a_file_of_its_own(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "product.cdsl").write_text(PRODUCT, "utf-8")
    (tmp_path / "threads.cdsl").write_text(THREADS, "utf-8")
    alone = cli("check", "threads.cdsl")
    assert alone.code == 0
    assert "as far as its verbs: name the operator's file too" in alone.out
    for order in (["threads.cdsl", "product.cdsl"], ["product.cdsl", "threads.cdsl"]):
        both = cli("check", *order, *SIZES)
        assert (both.code, both.err) == (0, "")
        assert "threads.cdsl: schedule product for wgsl is right" in both.out.splitlines()
    other = cli("check", "threads.cdsl", "fir.cdsl")
    assert other.code == 1
    assert "there is no operator `product` for this schedule" in other.err


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (THREADS.replace("product", "prodct"), "E0627", "did you mean `product`?"),
        (THREADS.replace("wgsl", "metal"), "E0627", "kernels for `metal` are not scheduled"),
        (block("splt y: n by 4 -> p, q"), "E0600", "did you mean `split`?"),
        (block("split y: n by -> p, q"), "E0601", "expected a number"),
        (THREADS + THREADS, "E0626", "two schedules"),
    ],
)
def test_refused_without_numbers(check: Cli, text: str, code: str, said: str) -> None:
    done = check(text)
    assert done.code == 1
    assert f"error[{code}]" in done.err
    assert said in done.err
    assert "product.cdsl:" in done.err
    assert done.out == "product.cdsl: product is right\n"


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        (["split y: j by 4 -> p, q"], "E0604"),
        (["split z: n by 4 -> p, q"], "E0602"),
        (["split y: n by 48 -> p, q tail perfect"], "E0608"),
        (["map y: k -> thread"], "E0613"),
    ],
)
def test_refused_with_numbers(check: Cli, steps: list[str], code: str) -> None:
    assert check(block(*steps)).code == 0
    done = check(block(*steps), *SIZES)
    assert done.code == 1
    assert f"error[{code}]" in done.err
    assert "product.cdsl:6:5" in done.err


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        (
            ["split y: m by 128 -> m_tile, m_in", "map y: m_tile -> grid, n -> grid, m_in -> thread"],
            ["the tile of 128 is larger than `m`, which has 96 iterations", "far apart in time"],
        ),
        (
            ["split y: n by 16 -> n_tile, n_in", "map y: m -> grid, n_tile -> grid, n_in -> thread"],
            ["a workgroup of `y` has only 16 threads"],
        ),
        (
            ["map y: n -> grid, m -> thread"],
            ["they lie along `n`, a loop of the grid"],
        ),
        (
            ["split y: n by 50 -> n_tile, n_in", "map y: n_tile -> grid, m -> thread"],
            ["they lie along `n_in`, a loop of one thread"],
        ),
        (
            [*VECTORS, "stage y: b at k_tile in workgroup pad 1"],
            ["the rows of the tile of `b` are widened by 1, so that they are read an element"],
        ),
        ([*VECTORS, "stage y: b at k_tile in workgroup pad 4"], []),
        (THREADS.splitlines()[1:-1], []),
    ],
    ids=["tile", "threads", "grid", "serial", "pad", "pad of vectors", "none"],
)  # fmt: skip
def test_warnings(check: Cli, steps: list[str], said: list[str]) -> None:
    text = block(*(s.strip() for s in steps))
    done = check(text, *SIZES)
    assert done.code == 0, done.err
    assert done.err.count("warning: ") == len(said)
    for sentence in said:
        assert sentence in done.err
    record = json.loads(check(text, *SIZES, "--json").out)[0]
    assert record["schedules"] == [{"op": "product", "target": "wgsl"}]
    assert len(record["warnings"]) == len(said)


def test_a_broken_operator_hides_its_schedule(check: Cli, cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.cdsl").write_text(PRODUCT.replace("b[k, n]", "b[k, q]") + "\n" + THREADS)
    done = cli("check", "bad.cdsl", *SIZES)
    assert done.code == 1
    assert done.err.count("error[") == 1
