"""E04xx: texts of loop programs and equation systems."""

from __future__ import annotations

from convdsl.codes.code import Code, code

TABLE: dict[str, Code] = {
    "E0401": code(
        "unexpected text in a loop program or equation system",
        """
        The text of an intermediate program does not fit its grammar at the marked place. Such texts
        are what `convdsl compile --emit STAGE` writes; blocks are indented, and a statement ends
        with its line unless a bracket is open:

            func scale(N)
              buffer x: f32[N] input
              buffer y: f32[N] output
            kernel y
              for n in 0..N serial
                y[n] = x[n] * 2.0

        Numbers with a point or an exponent are f32, others i32: write `2.0`, not `2`, beside a
        value of f32. An integer expression used as a value is written `f32{N - 1}`.
        """,
    ),
    "E0402": code(
        "access to something that is not declared",
        """
        A statement reads or writes a buffer, or an equation a tensor, that no line above declares.
        Buffers of the whole program stand under `func`, those of one kernel at its head:

            kernel y
              register acc: f32[4]
              acc[0] = 0.0
        """,
    ),
    "E0403": code(
        "wrong number of indices",
        """
        An access has one index for each dim of its buffer or tensor. To read the same elements in
        another shape, write the extents of that shape between the name and the indices; they are
        taken row by row, the last index fastest:

            buffer x: f32[N, G, C] input

            x[n, g, c]              three indices for three dims
            x<N, G*C>[n, g*C + c]   the same element of x, seen as a matrix
        """,
    ),
    "E0404": code(
        "division by zero in an index",
        """
        `//` and `%` between integers take a positive divisor. The marked one is the constant zero:

            y[n // 2] = x[n]     divides by two, rounding down
            y[n % N] = x[n]      N is taken to be one or more
        """,
    ),
    "E0405": code(
        "nested too deep",
        """
        The text of an intermediate program nests brackets, operations or blocks deeper than the
        reader goes. A sum of n terms counts as n, since `a + b + c` is `(a + b) + c`; store a part
        of it in a buffer of its own:

            acc[0] = a[0] + a[1]
            acc[0] += a[2] + a[3]
        """,
    ),
}
