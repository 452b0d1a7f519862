"""The rule scanner itself: what it has to find, and what it has to let pass."""

from __future__ import annotations

import pytest

from tests.wgsl_rules import check_wgsl_text, problems

HEAD = """
@group(0) @binding(0) var<storage, read> x: array<f32>;
var<workgroup> tile: array<f32, 64>;
@compute @workgroup_size(64, 1, 1)
fn main_(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_id) id: vec3<u32>) {
  let b: i32 = i32(wg.x);
  let t: i32 = i32(id.x);
"""

GOOD = {
    "barrier": "workgroupBarrier();",
    "uniform if": "if (b < 3) { workgroupBarrier(); }",
    "uniform loop": "for (var k: i32 = 0; k < b; k++) { tile[t] = 1.0; workgroupBarrier(); }",
    "guard around the load": "if (t < 3) { tile[t] = x[t]; } workgroupBarrier();",
    "inner loop of a thread": "for (var k = t; k < 9; k++) { tile[t] = x[k]; } workgroupBarrier();",
    "return of all": "if (b > 3) { return; } workgroupBarrier();",
    "numbers": "tile[t] = 1e+20 + 0.1 + 1e-07; tile[t + 1] = -3.4028235e+38;",
}

BAD = {
    "thread if": "if (t < 3) { workgroupBarrier(); }",
    "thread else": "if (t < 3) { tile[t] = 1.0; } else { workgroupBarrier(); }",
    "derived name": "let u: i32 = t + 1; if (u == b) { workgroupBarrier(); }",
    "loaded value": "let v = x[b]; if (v > 0.0) { workgroupBarrier(); }",
    "thread loop": "for (var k: i32 = 0; k < t; k++) { workgroupBarrier(); }",
    "return": "if (t < 3) { return; } workgroupBarrier();",
    "continue": "for (var k: i32 = 0; k < 4; k++) { if (t < k) { continue; } workgroupBarrier(); }",
    "break": "for (var k: i32 = 0; k < 4; k++) { workgroupBarrier(); if (t < k) { break; } }",
    "assigned": "var u: i32 = b; if (t == 0) { u = 1; } if (u == 1) { workgroupBarrier(); }",
    "carried": "var u = 0; for (var k = 0; k < 4; k++) { if (u > 2) { storageBarrier(); } u = t; }",
    "float index": "tile[i32(f32(t) * 0.5)] = 1.0;",
    "float let": "let u: i32 = i32(3.0 * f32(t));",
    "reserved": "let target = 1;",
    "builtin": "var max: f32 = 1.0;",
    "underscores": "let __a = 1;",
    "too large": "let u: i32 = 2147483648;",
    "too large a difference": "let u: i32 = b - 2147483648;",
    "infinite": "tile[t] = 1e39;",
    "f16": "var h: f16 = f16(1.0);",
    "brackets": "tile[t] = (1.0;",
}


@pytest.mark.parametrize("name", GOOD)
def test_good(name: str) -> None:
    check_wgsl_text(f"{HEAD}{GOOD[name]}\n}}\n", divisions=False)


@pytest.mark.parametrize("name", BAD)
def test_bad(name: str) -> None:
    assert list(problems(f"{HEAD}{BAD[name]}\n}}\n"))


def test_workgroup_size_is_numbers() -> None:
    assert list(problems("const n = 8;\n@compute @workgroup_size(n)\nfn a() { }\n"))
    assert list(problems("@compute\nfn a() { }\n"))


def test_enable_only_where_needed() -> None:
    text = "@compute @workgroup_size(1)\nfn a() { }\n"
    assert list(problems(f"enable f16;\n{text}"))
    check_wgsl_text(f"enable f16;\nvar<private> h: f16;\n{text}")


def test_divisions_in_inner_loops() -> None:
    loop = "for (var k: i32 = 0; k < 4; k++) { "
    for body in ("let q: i32 = b / 3; }", "tile[t % 3] = 1.0; }", "tile[floor_div(b, 3)] = 1.0; }"):
        text = f"{HEAD}{loop}{body}\n}}\n"
        check_wgsl_text(text)
        assert list(problems(text, divisions=False))
    own = "let q: i32 = k / 3; tile[q % 2] = x[t] / 3.0; }"
    check_wgsl_text(f"{HEAD}{loop}{own}\n}}\n", divisions=False)
