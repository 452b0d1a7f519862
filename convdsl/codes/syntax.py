"""E01xx: files and syntax."""

from __future__ import annotations

from convdsl.codes.code import Code, code

TABLE: dict[str, Code] = {
    "E0101": code(
        "unexpected text",
        """
        A word or character stands where the language has no place for it, or something is missing
        before it. The message marks the first word that does not fit; the slip is often just
        before. A whole operator looks like this:

            op matmul(a: f32[M, K], b: f32[K, N]) -> y: f32[M, N] {
                y[m, n] = sum[k] a[m, k] * b[k, n]
            }

        Things that are written differently elsewhere: products need their `*` (`2*x`, not `2x`), a
        power is `pow(a, b)`, a number has digits on both sides of its point, a tensor is defined
        once with `=` (no `+=`), a range is `k in 0..K` and leaves K out.
        """,
    ),
    "E0102": code(
        "source too large",
        """
        A source text may have 128 KiB. Operators are short; a text of this size is mostly numbers,
        and numbers are passed as tensors:

            op filter(x: f32[L], taps: f32[K]) -> y: f32[L] {
                y[o] = sum[k, l | l + k == o] x[l] * taps[k]
            }
        """,
    ),
    "E0103": code(
        "nested too deep",
        """
        Brackets nest at most 200 deep, and an expression has at most 128 operations on the way from
        its outside to its innermost operand. A sum of n terms counts as n, since `a + b + c` is
        `(a + b) + c`. Name a part:

            let part[n] = a[n] + b[n]
            y[n] = part[n] + c[n]

        or, where the terms are alike, state a reduction: `y[n] = sum[k] a[k, n]`.
        """,
    ),
    "E0104": code(
        "not UTF-8",
        """
        The file holds bytes that are no text in UTF-8, so it was saved in another encoding, or is
        no text at all. The message names the first such byte, counted from 0. A byte order mark at
        the start of the file is fine.
        """,
    ),
    "E0105": code(
        "cannot read the file",
        """
        The file does not exist, is a folder, or may not be read; the message says which. A string
        given to `convdsl.compile` is taken for a path if it has no newline and ends in `.cdsl`.
        """,
    ),
    "E0106": code(
        "forbidden character",
        """
        Control characters, a carriage return without a newline, and characters that change the
        direction of text are refused everywhere, comments included: what is read must be what is
        compiled. Other characters outside ASCII may stand in comments.
        """,
    ),
    "E0107": code(
        "brackets do not match",
        """
        A bracket is not closed, or closes nothing, or is closed by another kind:

            y[n] = relu(x[n]
        }                       # `(` is not closed: `}` comes first

        The message marks the opening bracket and what came instead of its partner.
        """,
    ),
    "E0108": code(
        "`=` and `==`",
        """
        `=` gives a value, to a tensor or to a default; `==` compares, in `where`, in the relations
        of a reduction and in the condition of a `select`:

            op shift(x: f32[L], by: int = 1) -> y: f32[LO]
            where LO == L - by
            {
                y[o] = sum[l | l == o + by] x[l]
            }
        """,
    ),
    "E0109": code(
        "an axis takes a bare index",
        """
        Tensors are read at indices, or at composites `(g, c)` of two or more indices, never at
        expressions. The arithmetic is a relation:

            y[o] = x[2*o + 1]                       # not in the language
            y[o] = sum[l | l == 2*o + 1] x[l]       # the same, stated as a relation

        So no read can be out of bounds: a point outside of the tensor contributes nothing.
        """,
    ),
    "E0110": code(
        "a reduction takes its indices in brackets",
        """
        `sum prod max min` are followed by their indices in square brackets and then by the product
        that they reduce:

            y[n] = sum[k] a[n, k] * b[k]

        `max(a, b)` and `min(a, b)`, with parentheses, are functions of two values.
        """,
    ),
    "E0111": code(
        "a reduction inside a product",
        """
        A reduction binds the product that follows, up to the next `+` or `-`, and stands alone or
        as a summand. Anywhere else it takes parentheses:

            y[n] = 2 * sum[k] a[n, k]               # refused
            y[n] = 2 * (sum[k] a[n, k])
            y[n] = sum[k] (max[j] a[k, j])          # one inside another
        """,
    ),
    "E0112": code(
        "not a type",
        """
        Tensors have the element types `f32`, `f16` and `i32`, and always axes; `[]` is rank 0.
        Parameters are `int` or `float` and have none:

            op scale(x: f32[N], gain: float = 1.0, repeat: int = 1) -> y: f32[N] {
                y[n] = gain * x[n]
            }

        There is no 64-bit type: GPUs do not have one. See the accuracy classes for how sums are
        kept exact enough.
        """,
    ),
    "E0113": code(
        "not an integer expression",
        """
        Axes, `where`, ranges and relations are arithmetic on integers: integers, sizes, `int`
        parameters (in relations, indices), `+ - *`, `//` and `%` by a positive divisor, `max(a, b)`
        and `min(a, b)`. There are no tensors in it, no fractions, and no `/`:

            op half(x: f32[N]) -> y: f32[H]
            where H == N // 2
            { y[h] = sum[n | n == 2*h] x[n] }

        A default is a plain number, `1` or `-0.5`, and a whole one for an `int`.
        """,
    ),
    "E0114": code(
        "`//` and `%` among values",
        """
        The quotient rounded down and the remainder exist between integers only: in axes, `where`,
        ranges and relations. Values are divided with `/`.
        """,
    ),
    "E0115": code(
        "`else` without max or min",
        """
        `max[...] a else v` and `min[...] a else v` have the value v where no point satisfies the
        relation. The empty sum is 0 and the empty product 1, so `sum` and `prod` take no `else`.
        A choice between values is `select(a < b, x, y)`.
        """,
    ),
    "E0116": code(
        "statements of an operator",
        """
        The body of an operator is any number of lets and then one definition of the result:

            let top[n] = max[j] x[n, j]
            let e[n, j] = exp(x[n, j] - top[n])
            y[n, j] = e[n, j] / (sum[i] e[n, i])
        """,
    ),
    "E0117": code(
        "an operator is defined twice",
        """
        Each operator of a file has its own name, by which `--op NAME` and schedules call it.
        """,
    ),
    "E0118": code(
        "no operator",
        """
        The text is empty, holds comments only, or holds schedules only. A schedule stands in the text
        of its operator, or is given next to it: `compile(..., schedule=...)` in Python.
        """,
    ),
    "E0119": code(
        "number too large",
        """
        Integers end at 2^63 - 1 and floats near 1.8e308. A large value is written as a float, like
        `1e20`.
        """,
    ),
    "E0120": code(
        "a word of the language as a name",
        """
        `sum prod max min let else` cannot name anything. All other words may: `op`, `in`, `where`,
        `for`, `schedule`, types and functions mean something only in their own places.
        """,
    ),
    "E0121": code(
        "a comparison as a value",
        """
        Comparisons are no values. Among values they stand as the first argument of `select`,
        without parentheses:

            y[n] = select(x[n] < 0, 0, x[n])
        """,
    ),
    "E0122": code(
        "a relation that is no equation",
        """
        What follows the `|` of a reduction is a list of equations. A range narrows an index by
        sizes and parameters; it leaves its end out:

            sum[k | k < count] a[k]                 # refused
            sum[k in 0..count] a[k]

        An index is bounded by another one with a further index that takes up the difference. This
        is a causal sum, over all k up to n; `k < n` would be `k + d + 1 == n`:

            y[n] = sum[k, d in 0..N | k + d == n] a[k]

        Other sets of points are passed as a tensor of zeros and ones:

            y[n] = sum[k] mask[n, k] * a[k]
        """,
    ),
}
