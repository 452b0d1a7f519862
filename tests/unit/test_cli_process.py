"""The command as users run it: interrupts, pipes, full disks, limits, and what it loads."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.unit.cli_tools import FIR, command, process

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals and limits of POSIX")


def named(value: object) -> str:
    """The id of a parameter: the name of a command."""
    return value[0] if isinstance(value, list) else ""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "fir.cdsl").write_text(FIR, "utf-8")
    return tmp_path


# -- interrupts ---------------------------------------------------------------------------------
def _interrupted(folder: Path, args: list[str], after: float) -> tuple[int, str]:
    """Send Ctrl-C some time after the interpreter has begun to run our code."""
    code = (
        # A runner in the background ignores Ctrl-C, and its children would inherit that.
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import sys, os; from convdsl.cli import main; sys.argv = ['convdsl', *sys.argv[1:]]\n"
        "os.write(1, b'.'); sys.exit(main())"
    )
    begun = subprocess.Popen(
        [sys.executable, "-c", code, *args], cwd=folder, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with begun:
        assert begun.stdout is not None
        assert begun.stdout.read(1) == "."
        time.sleep(after)
        begun.send_signal(signal.SIGINT)
        try:
            _, err = begun.communicate(timeout=60)  # against a hang; the work would take longer
        except subprocess.TimeoutExpired:
            begun.kill()
            raise
    return begun.returncode, err


@pytest.mark.parametrize("after", [0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0])
def test_interrupt(folder: Path, after: float) -> None:
    """At any moment: while modules are imported, while it compiles, while native code computes."""
    sizes = ["-D", "N=3000", "-D", "L=100000", "-D", "K=800"]
    args = ["run", "fir.cdsl", "--random", "x,w", *sizes, "--output", "y.npy"]
    code, err = _interrupted(folder, args, after)
    assert (code, err) == (130, "")
    assert [p.name for p in folder.iterdir()] == ["fir.cdsl"]


def test_interrupt_while_writing(folder: Path) -> None:
    """The temporary file is removed; whether the moment is hit varies, what is left does not."""
    for after in (0.35, 0.45, 0.55):
        args = ["compile", "fir.cdsl", "-o", "out"]
        code, err = _interrupted(folder, args, after)
        assert code in (0, 130)
        assert "Traceback" not in err
        left = {p.name for p in (folder / "out").glob("*")} if (folder / "out").exists() else set()
        assert left <= {"fir.wgsl", "fir.schedule.cdsl", "manifest.json"}
        assert not list(folder.rglob("*.tmp"))


# -- pipes and disks ----------------------------------------------------------------------------
@pytest.mark.parametrize("args", [["compile", "fir.cdsl"], ["explain"], ["--help"]], ids=named)
def test_a_reader_that_leaves(folder: Path, args: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            command(*args), cwd=folder, stdout=write, stderr=subprocess.PIPE, text=True, check=False
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only Linux has /dev/full")
@pytest.mark.parametrize("args", [["compile", "fir.cdsl"], ["explain"], ["--help"]], ids=named)
def test_stdout_on_a_full_disk(folder: Path, args: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command(*args), cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert done.stderr == "error: cannot write the output: No space left on device\n"


def test_a_full_disk(folder: Path) -> None:
    """A limit on the size of files stops writing half way, like a full disk does."""
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

    for args in (["compile", "fir.cdsl", "-o", "new/out"], ["compile", "fir.cdsl", "-o", "."]):
        done = subprocess.run(
            command(*args), cwd=folder, capture_output=True, text=True, preexec_fn=limit,
            check=False, env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith("error[E0360]: cannot write `")
        assert [p.name for p in folder.iterdir()] == ["fir.cdsl"]


def test_closed_stdout(folder: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" >&-', "sh", *command("compile", "fir.cdsl")],
        cwd=folder, stderr=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_with_few_letters(folder: Path, encoding: str) -> None:
    (folder / "\N{GREEK SMALL LETTER ALPHA}.cdsl").write_text("op", "utf-8")
    env = os.environ | {"PYTHONIOENCODING": f"{encoding}:strict"}
    name = "\N{GREEK SMALL LETTER ALPHA}.cdsl"
    done = process("check", name, "fir.cdsl", cwd=folder, env=env)
    assert done.returncode == 1
    assert ".cdsl:1:3" in done.stderr
    assert "internal" not in done.stderr
    (folder / name).write_text(FIR, "utf-8")
    done = process("check", name, cwd=folder, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(".cdsl: fir is right\n")


# -- hostile texts ------------------------------------------------------------------------------
HOSTILE = {
    "missing": (None, "E0105"),
    "line": (b"x" * 10_000_000, "E0102"),
    "nested": (b"op f(x: f32[N]) -> y: f32[N] { y[n] = " + b"(" * 10_000, "E0103"),
    "negated": (b"op f(x: f32[N]) -> y: f32[N] { y[n] = " + b"-" * 100_000 + b"1 }", "E0103"),
    "bytes": (b"op f\xff(", "E0104"),
    "zeros": (bytes(1000), "E0106"),
    "pathname": (b"", "E0118"),
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("verb", ["compile", "run", "check", "fmt"])
def test_hostile_texts(folder: Path, name: str, verb: str) -> None:
    content, code = HOSTILE[name]
    file = folder / "text.cdsl"
    if content is not None:
        file.write_bytes(content)
    done = process(verb, "text.cdsl", cwd=folder)
    if verb == "fmt" and name == "pathname":
        assert done.returncode == 0  # nothing is already in the canonical form
        return
    assert done.returncode == 1, done
    assert done.stderr.startswith(f"error[{code}]: ")
    assert len(done.stderr) < 2000
    assert done.stdout == "" or verb == "check"
    assert content is None or file.read_bytes() == content


# -- starting up --------------------------------------------------------------------------------
def _modules(folder: Path, *args: str) -> set[str]:
    code = (
        "import sys; sys.stdout = open('/dev/null', 'w'); from convdsl.cli import run\n"
        "run(sys.argv[1:]); print(*sys.modules, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *args], cwd=folder, capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    ("args", "heavy"),
    [
        (["--help"], {"numpy", "lark", "rich", "islpy", "wgpu", "importlib.metadata", "inspect"}),
        (["--version"], {"numpy", "lark", "rich", "islpy", "wgpu", "importlib.metadata"}),
        (["explain", "E0301"], {"numpy", "lark", "rich", "islpy", "wgpu", "importlib.metadata"}),
        (["fmt", "--stdout", "fir.cdsl"], {"numpy", "rich", "islpy", "wgpu"}),
        (["compile", "fir.cdsl"], {"rich", "islpy", "wgpu", "importlib.metadata"}),
    ],
    ids=named,
)
def test_what_is_loaded(folder: Path, args: list[str], heavy: set[str]) -> None:
    """Start-up times are kept by what is not imported; times themselves are for benchmarks."""
    if args == ["--help"]:
        heavy = heavy - {"inspect"}  # click and dataclasses import it
    assert _modules(folder, *args) & heavy == set()


def test_the_installed_command() -> None:
    """The script that pip installs is the same command."""
    found = shutil.which("convdsl", path=str(Path(sys.executable).parent))
    if found is None:
        pytest.skip("convdsl is not installed here, the checkout is tested")
    done = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == process("--version", cwd=Path.cwd()).stdout
