"""E091x: the facts of a machine that plans are chosen for, `--machine`."""

from __future__ import annotations

from convdsl.codes.code import Code, code

TABLE: dict[str, Code] = {
    "E0910": code(
        "not a file of facts of a machine",
        """
        `machine=` and `--machine` take `here`, or a JSON file with facts that plans are chosen for. One
        is written by

            convdsl devices --measure -o FILE
        """,
    ),
    "E0911": code(
        "facts of a machine in another form",
        """
        The file was written by another version of convdsl, in which facts mean something else. They are
        not guessed at: measure again.
        """,
    ),
    "E0912": code(
        "a fact of a machine that is not right",
        """
        Each fact is a number within bounds, and all of them are there: rates a second, seconds an
        element or a call, bytes, counts. `convdsl.machine.facts.Cpu(...)` and `Gpu(...)` take the
        typical one for each that is left out.
        """,
    ),
    "E0913": code(
        "no facts of what the target runs on",
        """
        Programs for NumPy are chosen by facts of the CPU, those for WGSL by facts of the GPU, and the
        file has none of that part. Measure on a machine that has it:

            convdsl devices --measure -o FILE
        """,
    ),
    "E0914": code(
        "not a machine",
        """
        `machine` is None for typical facts, "here" for those of this machine, the path of a file, or a
        `convdsl.machine.facts.Machine`:

            convdsl.compile(text, machine=Machine(Cpu(flops=60e9)))
        """,
    ),
}
