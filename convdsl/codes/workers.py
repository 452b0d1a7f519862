"""E068x: schedules for NumPy, loops that run on several threads."""

from __future__ import annotations

from convdsl.codes.code import Code, code

TABLE: dict[str, Code] = {
    "E0680": code(
        "a worker loop in a place where it cannot stand",
        """
        `map y: n -> worker` shares the iterations of a loop out among threads, which meet when all are
        done. So there is one worker loop at a time, and it stands outside the loops over terms:

            order y: n, k, t
            map y: n -> worker, k -> host

        Two loops become one by `fuse`. What `compute` puts into a worker loop has none of its own.
        """,
    ),
    "E0682": code(
        "iterations of a worker loop that may meet",
        """
        Threads run the iterations of a worker loop in any order, so it must be proved that no two of
        them make the same result. That is so for a loop over an axis, a block of it or a phase. A loop
        that was fused from others whose lengths are not numbers is beyond the proof; map one of them
        before, or give the sizes.
        """,
    ),
}
