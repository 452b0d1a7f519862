"""E065x: schedules, the steps that make equations of a reduction or of a let."""

from __future__ import annotations

from convdsl.codes.code import Code, code

TABLE: dict[str, Code] = {
    "E0653": code(
        "nothing to cut into blocks",
        """
        `rfactor` cuts the range of a summed index into blocks; `max`, `min` and `prod` have such an
        index, too. The equation has one reduction, and the message lists its indices:

            rfactor y: c by 64 -> part, y_part
        """,
    ),
    "E0654": code(
        "a range without blocks of its own",
        """
        `rfactor` makes a tensor with one axis for the blocks, so their number depends on sizes alone.
        After `gather` an index runs from where it begins to count for one result. Cut it before the
        relation is solved, or another index, or solve the relation by `phases`:

            rfactor y: l by 64 -> part, y_part
            gather y_part
        """,
    ),
    "E0655": code(
        "blocks that may be empty, with `else`",
        """
        The `else` of a max or min stands for no terms at all. With a relation a block may have none
        while another one has some, and the partial result of an empty block is no number that only an
        empty block has. Without a relation all blocks have terms, or none has.
        """,
    ),
    "E0656": code(
        "the result inlined",
        """
        `inline` puts the expression of a `let`, or of a tensor that a step made, where it is read. The
        result is read by nobody here.
        """,
    ),
    "E0657": code(
        "no one expression for a tensor",
        """
        `inline` needs one expression with an index for each axis. `phases` writes a tensor in blocks,
        each by an expression of its own. And whoever reads it splits its axes as it does itself: where
        `h[n, (g, m)]` is defined, `h[n, q]` needs it stored.
        """,
    ),
    "E0658": code(
        "reductions inside or beside each other",
        """
        An equation has one reduction at most, and none inside it: its terms would be computed again for
        each term of the other one. A tensor with a reduction can be inlined where it is read outside of
        reductions, by an equation that has no other one.
        """,
    ),
    "E0659": code(
        "an expression too long to write",
        """
        Whoever reads a tensor twice has its expression twice after `inline`. An expression has at most
        500 parts.
        """,
    ),
    "E0660": code(
        "the result materialised",
        """
        `materialise` stores a `let` that would be fused into what reads it. The result is stored anyway.
        """,
    ),
}
