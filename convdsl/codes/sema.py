"""E02xx: names, shapes and types. E03xx: sizes, parameters and data."""

from __future__ import annotations

from convdsl.codes.code import Code, code

TABLE: dict[str, Code] = {
    "E0201": code(
        "unknown name",
        """
        Nothing declares this name where it stands. Indices are in scope on the right of the left
        side that names them and inside the reduction that binds them:

            y[n] = sum[k] x[n, k] * w[k]        # n: everywhere here; k: inside the sum only

        Parameters and tensors are declared in the parentheses of the operator. A size is known when
        it stands on an axis of an input, or when a clause `where NAME == expr` defines it.
        """,
    ),
    "E0202": code(
        "name already taken",
        """
        Parameters, inputs, the result and lets share one set of names. An index may be used again
        by a reduction that stands beside another one, but not by one inside its scope:

            y[n] = (sum[k] x[n, k]) / (sum[k] w[k])            # fine: k twice, side by side
            y[n] = sum[n] x[n]                                 # not: n is in scope already

        Rename one of them.
        """,
    ),
    "E0203": code(
        "relation not affine",
        """
        A relation says which points take part, by an equation that is affine in the indices: each
        index is multiplied by integers, sizes and parameters, never by an index, and not divided.

            sum[k, l | l*stride + k*dilation == o + pad] ...       # affine
            sum[k, l | l == (o + k) // 2] ...                      # not

        A quotient is stated the other way round, with the remainder as one more index:

            sum[r in 0..2, k, l | 2*l + r == o + k] ...
        """,
    ),
    "E0204": code(
        "wrong kind of name",
        """
        The first letter tells what a name is: sizes start with an upper-case letter; indices,
        parameters and tensors with a lower-case one. An index must not have the name of a tensor or
        parameter of its operator, since `x[k]` could then mean two things.
        """,
    ),
    "E0205": code(
        "wrong number of axes",
        """
        A tensor is read and defined with one index, or one composite `(a, b)`, an axis. An axis
        that is a product counts once: `x: f32[N, groups*C, L]` has three axes. A tensor of rank 0
        is read as `s[]`.
        """,
    ),
    "E0206": code(
        "wrong number of factors",
        """
        A composite `(a, b)` splits an axis into the factors of its declaration, by position, the
        first one slowest. On `x: f32[N, groups*C, L]`:

            x[n, (g, c), l]        # g over groups, c over C
            x[n, ch, l]            # ch over the whole axis, groups*C

        Another number of indices has no meaning.
        """,
    ),
    "E0207": code(
        "an index without a range",
        """
        An index ranges over the axis on which it stands, in the statement or in the reduction that
        binds it. One that stands in relations only has its range written, half open:

            y[o] = sum[k in 0..kernel, l | l == o*stride + k] x[l]

        An index on the left side of a `let` may also take its range from the places that read the
        `let`: in an overlap-add, `o` stands on no axis of the `let` itself. Where these read it at
        an index with a written range from 0, the same in all of them, that is the range:

            let full[o] = sum[k, l | l + k == o] x[l] * w[k]
            y[h] = sum[o in 0..LO | o == 2*h] full[o]
        """,
    ),
    "E0208": code(
        "two ranges for one index",
        """
        All axes on which an index stands must have the same extent, as the sizes' names and the
        `where` clauses say it; two different names are two sizes even if they happen to be equal.

            op dot(a: f32[M], b: f32[N]) -> y: f32[] where M == N { y[] = sum[k] a[k] * b[k] }

        A written range may be narrower than an axis, but not leave it. Padding needs no wider
        range: a point outside the relation contributes nothing.
        """,
    ),
    "E0209": code(
        "an index twice on the left side",
        """
        On the left side every axis has an index of its own, so that each element is defined once.
        A diagonal is read, not written: `d[i] = x[i, i]`.
        """,
    ),
    "E0210": code(
        "the axis of an input is not a product",
        """
        Sizes are found from the shapes of the inputs by division, so an axis of an input is a
        product of integers, parameters and sizes. Give it a size of its own and relate it:

            op f(x: f32[A], w: f32[L]) -> y: f32[L] where A == L + 2 { ... }
        """,
    ),
    "E0211": code(
        "bad definition of a size",
        """
        A clause `where NAME == expr`, with NAME on no input axis, defines the size NAME: once, and
        from what the inputs and parameters give. It is never solved for another name in it. With
        NAME on an input axis the clause is a check, and so is `expr == NAME`. An input that is
        absent has no axes.
        """,
    ),
    "E0212": code(
        "read before it is defined",
        """
        The expression of a statement reads inputs and earlier lets. The result cannot be read; what
        is needed twice is a `let`:

            let h[n] = exp(x[n])
            y[n] = h[n] / (1 + h[n])
        """,
    ),
    "E0213": code(
        "types do not fit",
        """
        Values are f32 or i32 (a stored f16 is read as f32), and nothing converts by itself: write
        `f32(a)` or `i32(a)`, which drops the fraction. Integer literals, sizes and `int` parameters
        adapt: `2 * x[n]` and `x[n] / K` are f32 for an f32 x. `/` and all functions but abs, relu,
        max and min work on floats only. A value is stored as the type that its tensor declares; a
        `let` without a type is f32.
        """,
    ),
    "E0214": code(
        "wrong call",
        """
        The functions are abs, sqrt, exp, log, sin, cos, tanh, sigmoid, relu and gelu of one value,
        leaky_relu(x, slope) and pow(x, y), max and min of two or more, select(a < b, yes, no), and
        the conversions f32, f16 and i32.
        """,
    ),
    "E0215": code(
        "not integer arithmetic",
        """
        Sizes, `where` clauses, ranges and relations are exact arithmetic on integers: `+ - * // %`,
        min and max over integer literals, sizes and `int` parameters; in relations over indices
        too. Float parameters, tensors and `/` have no place there.

        A written range has no indices in it either. A sum over all k up to another index, as of a
        causal filter, takes a further index for the difference, or a mask:

            y[n] = sum[k in 0..n + 1] a[k]                      # refused
            y[n] = sum[k, d in 0..N | k + d == n] a[k]
            y[n] = sum[k] mask[n, k] * a[k]
        """,
    ),
    "E0216": code(
        "not a value",
        """
        Values come from tensors, parameters, sizes and literals. An index is not a value: pass a
        tensor with the numbers that are wanted (a ramp, a window, a mask) and read it. A tensor
        stands with its axes, and a comparison only as the condition of `select(a < b, yes, no)`.
        """,
    ),
    "E0217": code(
        "which operator",
        """
        The text defines several operators, or none of the given name. Choose one with `--op NAME`
        on the command line, or `op="NAME"` in Python.
        """,
    ),
    "E0218": code(
        "`else` on sum or prod",
        """
        Over no points a sum is 0 and a product is 1. Only max and min have no value there, and
        `else` says what it is: `max[k] x[n, k] else 0`.
        """,
    ),
    "E0219": code(
        "the wrong tensor is defined",
        """
        The last statement defines the tensor that stands behind `->`; all statements before it are
        lets, with names of their own.
        """,
    ),
    "E0220": code(
        "constant does not fit its type",
        """
        i32 holds whole numbers from -2147483648 to 2147483647, f16 reaches 65504, and f32 about
        3.4e38. A constant beyond would silently become another number.
        """,
    ),
    "E0301": code(
        "precondition failed",
        """
        A `where` clause of the operator does not hold for these sizes and parameters. The message
        shows the clause with its numbers; a comment on the clause's own line is shown as its
        reason.

            where stride >= 1,
                  out_pad < stride        # it only chooses among lengths that conv1d maps back
        """,
    ),
    "E0302": code(
        "bad parameter",
        """
        Parameters are given by name: `-D stride=2`, or `params={"stride": 2}` in Python. Those
        without a default must be given. An `int` takes integers only (no bool, no float), a `float`
        any finite number. Sizes are no parameters: they follow from the inputs' shapes, or are
        given apart.
        """,
    ),
    "E0303": code(
        "shape does not fit",
        """
        An input has another rank than declared, or an axis has another length than the sizes found
        from the other axes say. The message names the axis (counted from 0), shows its formula with
        numbers, and the shapes of the inputs that share a size with it: any of them may be wrong.
        """,
    ),
    "E0304": code(
        "a size cannot be determined",
        """
        An axis with one unknown size determines it by exact division: `groups*C` of length 6 with
        groups = 2 gives C = 3, but length 5 gives no integer. An axis with two unknown sizes
        determines neither, and 0 * C says nothing about C. Then another axis must, or the size is
        given. A size that only absent inputs have is what a clause `NAME == expr` says.
        """,
    ),
    "E0305": code(
        "negative size",
        """
        A size came out below zero; the message shows its formula with numbers. Often padding or
        cropping is larger than what there is to crop. Zero is fine: it makes an empty result.
        """,
    ),
    "E0306": code(
        "max or min over nothing",
        """
        Over no points a sum is 0 and a product is 1, but max and min have no value. The message
        names a place where there is no point. Say what the value is there,

            y[o] = max[k in 0..3, l | l == o*2 + k - pad] x[l] else 0

        or exclude it: `where K >= 1`. Sizes may be zero unless `where` says otherwise.
        """,
    ),
    "E0307": code(
        "number too large",
        """
        Sizes are calculated exactly, within 64 bits. A tensor has at most 2147483647 elements, and
        relations and integer values stay within 32 bits, because index arithmetic on the targets is
        32 bit: a larger one would wrap around and read the wrong element.

        The *data* of i32 tensors is not checked. The definition is exact, WGSL and NumPy wrap
        modulo 2^32: an operator whose values pass 32 bits is outside of the language.
        """,
    ),
    "E0308": code(
        "divisor not positive",
        """
        `//` and `%` are floor division and modulo by a positive divisor. Guard against other values
        with a clause such as `where stride >= 1`; clauses that need parameters only are checked
        before anything is divided.
        """,
    ),
    "E0309": code(
        "bad size",
        """
        Sizes are given by name: those on input axes, and defined ones if the number agrees with the
        definition. They are integers, not negative.
        """,
    ),
    "E0310": code(
        "written range leaves the axis",
        """
        An index with a written range (`k in 0..kernel`) stands on an axis that is shorter than the
        range. A written range may narrow an axis. A clause like `where kernel <= K` says so to the
        reader.
        """,
    ),
    "E0311": code(
        "inputs missing or unknown",
        """
        Every input without a default must be passed, and nothing that is no input. An input with a
        default (`b: f32[M] = 0`) may be left out and then is that constant.
        """,
    ),
    "E0312": code(
        "data of the wrong type",
        """
        Arrays hold real numbers; an i32 input takes integers only.
        """,
    ),
}
