"""The loader of docs/how-to/ship-wgsl-to-a-browser.md, in Chromium, against the definition.

Only `make browser` runs these, since Chromium is large: `pytest -m browser`. Without a Chromium, or
with one that has no WebGPU adapter, they fail.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, cast

import numpy as np
import pytest

import convdsl
from convdsl import ops
from tests.docs.pages import DOCS, blocks

BROWSER = next(
    filter(None, map(shutil.which, ["chromium", "chromium-browser", "google-chrome"])), None
)
FLAGS = [
    "--headless=new", "--no-sandbox", "--disable-gpu-sandbox", "--no-first-run",
    "--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader", "--enable-features=Vulkan",
]  # fmt: skip
ATTEMPT = """\
<!doctype html>
<script type="module">
  import { evaluate, features, load } from "./convdsl.js";
  const send = (value) => fetch("/result", { method: "POST", body: JSON.stringify(value) });
  try {
    const asked = await (await fetch("asked.json")).json();
    const adapter = await navigator.gpu?.requestAdapter();
    if (!adapter) throw new Error("no adapter");
    const device = await adapter.requestDevice({ requiredFeatures: await features("layer") });
    const faults = [];
    device.onuncapturederror = (event) => faults.push(event.error.message);
    const layer = await load(device, "layer");
    const inputs = {};
    for (const [name, values] of Object.entries(asked.inputs)) inputs[name] = new Float32Array(values);
    const y = await layer.run(inputs, asked.sizes);
    const numbers = asked.expressions.map((text) => evaluate(text, asked.values));
    const counts = [], again = [];
    const pass = GPUComputePassEncoder.prototype;
    const dispatch = pass.dispatchWorkgroups;
    pass.dispatchWorkgroups = function (...groups) {
      counts[counts.length - 1]++;
      return dispatch.apply(this, groups);
    };
    const constants = Object.fromEntries(asked.constants.map((name) => [name, inputs[name]]));
    const others = Object.entries(inputs).filter(([name]) => !asked.constants.includes(name));
    const bound = layer.bind(constants);
    for (const sizes of asked.runs) {
      const count = (name) => asked.counts[name][again.length];
      const cut = Object.fromEntries(others.map(([name, all]) => [name, all.slice(0, count(name))]));
      counts.push(0);
      again.push([...(await bound.run(cut, sizes)).data]);
    }
    bound.destroy();
    await send({ faults, numbers, shape: y.shape, data: [...y.data], counts, again });
  } catch (error) {
    await send({ failed: String(error) });
  }
</script>
"""
WATCH = """\
<script>
  const send = (value) => fetch("/result", { method: "POST", body: JSON.stringify(value) });
  addEventListener("unhandledrejection", (event) => send({ failed: String(event.reason) }));
  addEventListener("error", (event) => send({ failed: event.message }));
  const first = document.title;
  const timer = setInterval(() => {
    if (document.title === first) return;
    clearInterval(timer);
    send({ title: document.title });
  }, 20);
</script>
"""
EXPRESSIONS = [
    "7", "-a // 4", "(-a) // 4", "a - b*2 + 1", "-((-(a*b) // 3)) % 4", "min(a, max(b, 2), 9)",
    "(a + b)*(a - b)", "a*b % 5 - -b",
]  # fmt: skip
VALUES = {"a": 11, "b": 3}


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder, and puts what the page posts into a queue."""

    results: Queue[Any]

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.results.put(json.loads(self.rfile.read(length)))
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str, Queue[Any]]]:
    """A folder with the loader, its address, and the queue of results."""
    for block in blocks(DOCS / "how-to" / "ship-wgsl-to-a-browser.md"):
        if block.language in ("js", "html") and (name := block.value("file")):
            (tmp_path / name).write_text(block.text, "utf-8")
    page = (tmp_path / "page.html").read_text("utf-8")
    (tmp_path / "page.html").write_text(page + WATCH, "utf-8")
    (tmp_path / "attempt.html").write_text(ATTEMPT, "utf-8")
    results: Queue[Any] = Queue()
    handler = type("Site", (Handler,), {"results": results})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(tmp_path)))
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield tmp_path, f"http://localhost:{server.server_port}", results
    server.shutdown()
    server.server_close()
    thread.join()


def visit(address: str, results: Queue[Any], profile: Path) -> Any:
    """What the page posts; the browser ends with the visit."""
    assert BROWSER is not None, "there is no Chromium: `make browser` installs one where it can"
    with subprocess.Popen(
        [BROWSER, *FLAGS, f"--user-data-dir={profile}", address],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"HOME": str(profile)},
    ) as browser:
        try:
            return results.get(timeout=90)
        except Empty:
            pytest.fail("the page has not answered")
        finally:
            browser.terminate()


pytestmark = pytest.mark.browser


Case = tuple[dict[str, tuple[int, ...]], dict[str, int], dict[str, int], list[str]]
CASES: dict[str, Case] = {  # shapes, sizes, parameters, constants
    "softmax": ({"x": (5, 37)}, {"N": 5, "C": 37}, {}, []),
    "conv_transpose1d": (
        {"x": (2, 24, 9), "w": (24, 16, 8), "b": (16,)},
        {"N": 2, "C": 24, "L": 9, "M": 16, "K": 8},
        {"stride": 3, "dilation": 2},
        ["w", "b"],
    ),
    "istft": (
        {"spectrum": (3, 10, 7), "basis": (10, 8), "window": (8,)},
        {"N": 3, "F": 10, "T": 7, "K": 8},
        {"hop": 2},
        ["basis", "window"],
    ),
}


@pytest.mark.parametrize("name", sorted(CASES))
def test_loader(name: str, site: tuple[Path, str, Queue[Any]], tmp_path_factory: Any) -> None:
    """Run unbound, then bound: twice with all of a batch, then with one of it."""
    folder, address, results = site
    random = np.random.default_rng(0)
    shapes, sizes, params, constants = CASES[name]
    inputs = {n: random.integers(-4, 5, s).astype(np.float32) for n, s in shapes.items()}
    kernel = convdsl.compile(ops.source(name), target="wgsl", params=params, dynamic=list(sizes))
    kernel.save(folder / "layer")
    first = {n: a if n in constants else a[:1] for n, a in inputs.items()}
    asked = {
        "sizes": sizes, "expressions": EXPRESSIONS, "values": VALUES,
        "inputs": {n: a.ravel().tolist() for n, a in inputs.items()},
        "constants": constants, "runs": [sizes, sizes, sizes | {"N": 1}],
        "counts": {n: [a.size, a.size, first[n].size] for n, a in inputs.items()},
    }  # fmt: skip
    (folder / "asked.json").write_text(json.dumps(asked), "utf-8")
    answer = visit(f"{address}/attempt.html", results, tmp_path_factory.mktemp("profile"))
    assert answer.get("failed") is None
    assert answer["faults"] == []
    assert answer["numbers"] == [
        eval(text, {"min": min, "max": max} | VALUES) for text in EXPRESSIONS
    ]
    wanted = convdsl.evaluate(ops.source(name), inputs, params)
    assert tuple(answer["shape"]) == wanted.shape
    one = convdsl.evaluate(ops.source(name), first, params)
    for data, want in zip(
        [answer["data"], *answer["again"]], [wanted, wanted, wanted, one], strict=True
    ):
        np.testing.assert_allclose(np.reshape(data, want.shape), want, rtol=2e-6, atol=1e-6)
    module = kernel.executable.manifest()
    whole, folds = len(cast(Any, module["kernels"])), cast(Any, module["folds"])
    kept = sum(len(f["kernels"]) for f in folds if set(f["inputs"]) <= set(constants))
    assert kept == (1 if name == "istft" else 0)
    assert answer["counts"] == [whole, whole - kept, whole - kept]


def test_page(site: tuple[Path, str, Queue[Any]], tmp_path_factory: Any) -> None:
    folder, address, results = site
    text = ops.source("conv_transpose1d")
    convdsl.compile(
        text, target="wgsl", params={"stride": 4}, dynamic=["N", "C", "L", "M", "K"]
    ).save(folder / "layer")
    answer = visit(f"{address}/page.html", results, tmp_path_factory.mktemp("profile"))
    x = (np.arange(24 * 9) % 7 - 3.0).reshape(1, 24, 9)
    w = (np.arange(24 * 16 * 8) % 5 - 2.0).reshape(24, 16, 8)
    wanted = convdsl.evaluate(text, {"x": x, "w": w}, {"stride": 4})
    shown = ",".join(f"{value:g}" for value in wanted.ravel()[:4])
    assert answer == {"title": f"y[{','.join(map(str, wanted.shape))}]: {shown}"}
