"""Codes of the verbs on tiles in workgroup memory and on the order of workgroups: E0644 to E0646."""

from __future__ import annotations

from convdsl.codes.code import Code, code

TABLE: dict[str, Code] = {
    "E0644": code(
        "an operand without a tile",
        """
        `pipeline` and `interior` are about how a tile in workgroup memory is filled, so the operand is
        staged there first; each is said once of it:

            stage y: x at c_tile in workgroup
            pipeline y: x
        """,
    ),
    "E0645": code(
        "more than can be read ahead",
        """
        What `pipeline` reads ahead waits in registers. A thread reads at most 16 parts of a tile
        ahead, each four neighbours along a row (or one, where the rows of the tile are not a multiple
        of four). Two to four are a good number: make the tile smaller, or the workgroup larger.
        """,
    ),
    "E0646": code(
        "no two loops of the grid to order",
        """
        `swizzle` says in which order the workgroups of two loops run. Both are mapped to the grid
        before, they are two, and there is one such order in a nest:

            map y: m_tile -> grid, n_tile -> grid, ...
            swizzle y: m_tile, n_tile by 8
        """,
    ),
}
