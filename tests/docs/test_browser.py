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
from typing import Any

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
    await send({ faults, numbers, shape: y.shape, data: [...y.data] });
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


@pytest.mark.parametrize("name", ["conv_transpose1d", "softmax"])
def test_loader(name: str, site: tuple[Path, str, Queue[Any]], tmp_path_factory: Any) -> None:
    folder, address, results = site
    random = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {"x": (5, 37)}
    sizes, params = {"N": 5, "C": 37}, {}
    if name == "conv_transpose1d":
        shapes = {"x": (2, 24, 9), "w": (24, 16, 8), "b": (16,)}
        sizes, params = {"N": 2, "C": 24, "L": 9, "M": 16, "K": 8}, {"stride": 3, "dilation": 2}
    inputs = {n: random.integers(-4, 5, s).astype(np.float32) for n, s in shapes.items()}
    kernel = convdsl.compile(ops.source(name), target="wgsl", params=params, dynamic=list(sizes))
    kernel.save(folder / "layer")
    asked = {
        "sizes": sizes, "expressions": EXPRESSIONS, "values": VALUES,
        "inputs": {n: a.ravel().tolist() for n, a in inputs.items()},
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
    np.testing.assert_allclose(np.reshape(answer["data"], wanted.shape), wanted, rtol=2e-6)


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
