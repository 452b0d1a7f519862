"""E05xx: programs that do not fit the limits of a WebGPU target."""

from __future__ import annotations

from convdsl.codes.code import Code, code

TABLE: dict[str, Code] = {
    "E0501": code(
        "too many threads in a workgroup",
        """
        A schedule maps more loop iterations to the threads of one workgroup than the target allows.
        Profile `webgpu`, which any browser fulfils, allows 256; an adapter may allow more
        (`convdsl devices` prints its limits, `--limits adapter` uses them).

        A tile of 128 by 128 outputs at 4 by 4 a thread needs 32 x 32 = 1024 threads. At 8 by 8 a
        thread it needs 256.
        """,
    ),
    "E0502": code(
        "workgroup too long along one axis",
        """
        Besides the number of threads there is a limit for each axis: 256 along x and y and 64 along
        z in profile `webgpu`. The innermost thread loop is x, the next one y, the outermost z.
        """,
    ),
    "E0503": code(
        "too much workgroup memory",
        """
        The staged tiles of one kernel together are larger than the memory of a workgroup: 16384
        bytes in profile `webgpu`. A tile of 64 by 65 f32 numbers takes 16640 bytes.

        Make the tile smaller, first of all along the reduction, where size costs nothing but a few
        more steps; or stage only one of the operands.
        """,
    ),
    "E0504": code(
        "too many buffers in one kernel",
        """
        A kernel reads and writes more tensors than the target can bind at once: 8 in profile
        `webgpu`. Name an intermediate result with `let` and have it materialised: the kernel is
        then split in two, and each part binds only what it uses.
        """,
    ),
    "E0505": code(
        "tensor larger than a binding",
        """
        A tensor, or an intermediate result, has more bytes than the target can bind: 134217728
        (128 MiB) in profile `webgpu`. Many adapters allow more: `--limits adapter`. Otherwise run
        the operator on parts of its batch.
        """,
    ),
    "E0506": code(
        "unknown limits",
        """
        The limits a program is generated for are named by a profile: `webgpu` (the defaults of the
        specification: any browser) or `adapter` (those of the adapter of this machine).
        """,
    ),
    "E0507": code(
        "too many workgroups",
        """
        A dispatch has at most 65535 workgroups along each of three dimensions. Longer loops are
        split and folded over the dimensions, and this program does not fit even so. With larger
        tiles a workgroup does more and fewer are needed.
        """,
    ),
}
