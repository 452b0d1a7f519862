"""E065x, E066x, E0697: schedules, the steps that make further equations, and `taps`."""

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
    "E0661": code(
        "an equation that is no filter",
        """
        `toom` takes a sum of products of two operands, in floats, over indices of fixed ranges, whose
        relations are solved:

            solve y for l                               # or: phases y over o, k -> t, r, j
            toom y over o, k by 3 -> xt, wt, zt: tile, u, z
        """,
    ),
    "E0662": code(
        "an index that the filter does not have",
        """
        `toom y over BLOCK, TAP` names an index of the result, along which the filter moves, and a
        summed one, which counts its taps. After `phases y over o, k -> t, r, j` they are t and j.
        """,
    ),
    "E0663": code(
        "operands that are no data and taps",
        """
        Of the two operands of a filter one, the data, is read at BLOCK - TAP or at BLOCK + TAP and
        nowhere else by these two; the other one, the taps, depends on TAP and not on BLOCK.
        """,
    ),
    "E0664": code(
        "a filter with steps",
        """
        Fewer products are possible where the data move by as much with the tap as with the result:
        `x[t - j]` or `x[t + j]`. With a dilation, `x[t + 2*j]`, or a stride, `x[2*t + j]`, each tap
        meets other data. `phases` turns a stride of a transposed convolution into filters without.
        """,
    ),
    "E0665": code(
        "a condition on data and taps together",
        """
        `toom` transforms each operand by itself, as zero where it is not read. A condition that
        speaks of indices of both, or of the place of the result, cannot go along.
        """,
    ),
    "E0666": code(
        "a number of taps that has no transform",
        """
        The number of taps must be known when the schedule is applied, and more than one: with one
        tap there is nothing to save.
        """,
    ),
    "E0673": code(
        "a step that the accuracy class does not allow",
        """
        With E0 the error of the float32 sum in blocks of 128 terms, `strict` allows 1.5 E0 and only
        another order of the sum, `standard` 3 E0, and `fast` 5 E0. The message has the error of the
        step, which falls with the number of results at a time:

            toom y over t, j by 4 -> xt, wt, zt: tile, u, z     # 4 taps: 3.0 E0; by 5: 3.6 E0
        """,
    ),
    "E0675": code(
        "a pair of indices that no relation ties",
        """
        `toeplitz y over OUTPUT, DATA` names an index of the result and a summed one that stand in one
        relation with integers as coefficients, and ranges that do not depend on other indices. So it
        comes before the step that solves the relation:

            toeplitz y over o, l by 32 -> q, u, a       # l*2 + k == o + pad
            solve y for k
        """,
    ),
    "E0676": code(
        "a block that ends between two steps of the data",
        """
        Each block of results must have the same relation to its window: so many results must be a whole
        number of steps along the data. With `l*3 + k == o` those are 3, 6, 9, ... results; with
        `o*3 + k == l` any number.
        """,
    ),
    "E0677": code(
        "a window of unknown length",
        """
        How much data a block of results needs follows from the ranges of the other indices in its
        relation, the taps. Sizes that they depend on must have numbers.
        """,
    ),
    "E0683": code(
        "no such operand",
        """
        `reindex` and `layout` copy an operand of a reduction: a factor of the product that is summed,
        called by the first tensor that it reads, or `x.2` for a second one that reads `x`. The message
        lists them.
        """,
    ),
    "E0684": code(
        "indices that are not those of the operand",
        """
        The copy has an axis for each index that the operand depends on, in the order that is given:

            reindex y: x by c, j, t -> xs          # x[c, t - j]
        """,
    ),
    "E0685": code(
        "a range that depends on another index",
        """
        The copy that `reindex` makes is a box: the range of each of its indices depends on sizes alone.
        After `gather` a summed index runs from where it begins to count for one result; `phases` makes
        ranges that do not depend on others.
        """,
    ),
    "E0690": code(
        "an axis that the copy cannot have",
        """
        An axis of `layout` stands for the sum that the operand is read along, `t - j` for `t`, whose
        indices have ranges of known numbers and one of them the factor 1 or -1. Rows that follow each
        other (`t over n`) are as far apart as `t` has values, and may share zeros only: the message has
        the elements of a row, and from where to where it is read.
        """,
    ),
    "E0691": code(
        "axes that are not those of the operand",
        """
        `layout` needs an axis for each index that the operand depends on, or for the sum it stands in:

            layout y: x by c, t over n -> xs          # x[n, c, t - j]
        """,
    ),
    "E0674": code(
        "an index that cannot be padded",
        """
        `pad z: c to 16` makes the operands of `z` longer along `c`, with zeros. So they are tensors that
        the program makes for `z` alone, by `toom`, `pack` or a `let`, and read an element an index; an
        input is what the caller gives. Where the index is free, `z` is such a tensor, too.
        """,
    ),
    "E0697": code(
        "a relation without taps of its own",
        """
        `taps` solves the relation of one index of the result with coefficient 1, and two summed
        ones, all three from zero and with coefficients that are numbers:

            taps y over o, k -> j               # l*stride + k*dilation == o + pad

        The message shows the equation. `solve` and `gather` need less.
        """,
    ),
}
