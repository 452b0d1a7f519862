"""E06xx: schedules, their steps and what becomes of the loops."""

from __future__ import annotations

from convdsl.codes.code import Code, code

TABLE: dict[str, Code] = {
    "E0600": code(
        "unknown verb",
        """
        Every line of a schedule is one step, and its first word is the verb:

            schedule matmul for wgsl {
                split y: m by 64 -> mo, mi
                map y: mo -> grid, mi -> thread
            }

        The message lists the verbs. A step ends where its line ends.
        """,
    ),
    "E0601": code(
        "a step in another form than its verb has",
        """
        After the verb comes the equation, and then what the verb needs, in its own form, which the
        message shows. Words in capitals stand for names and numbers of yours, `[...]` may be left
        out, `a|b` is a choice:

            split EQUATION: LOOP by NUMBER -> OUTER, INNER [tail guard|cut|pad|perfect]
            split y: c by 16 -> co, ci tail pad
        """,
    ),
    "E0602": code(
        "no such equation",
        """
        A step names the equation that it changes by its tensor: the result, a `let`, or a tensor that
        an earlier step made (`columns y -> col`). `phases` may leave results that no term reaches;
        they are the equations `y.hole`, `y.hole2`.

        A `let` that is fused into what reads it is no equation of its own; `materialise h` keeps it one.
        """,
    ),
    "E0603": code(
        "loops of a relation that is not solved",
        """
        While a sum is over the points of a relation (`| l*s + k == o`) there are no loops to
        arrange. Say first how its points are found: `gather` for any relation, `solve` for one
        variable with coefficient 1, `phases` for a stride at the output, `columns` for products
        first.
        """,
    ),
    "E0604": code(
        "no such loop",
        """
        In the beginning an equation has one loop for each index, by its name. `split` and `fuse`
        replace loops by new ones, `phases` replaces three indices. The message shows the loops as
        they are at this step.
        """,
    ),
    "E0605": code(
        "a new name that cannot be one",
        """
        The names that a step gives to loops and tensors begin with a lower-case letter (upper-case
        ones are sizes), are not those of tensors, sizes, loops or indices that there are, nor words
        that are never names (`sum prod max min let else`). The name of a loop that was split stays
        taken: it names the index still.
        """,
    ),
    "E0606": code(
        "a number that a step cannot use",
        """
        The factor of a `split`, and the length of a block of `rfactor` or `toeplitz`, is from 1 to
        65536, so that no rounded-up extent leaves 31 bits. The `pad` of a `stage` is from 0 to 64, and
        only for tiles in workgroup memory: registers have no banks.
        """,
    ),
    "E0607": code(
        "nothing to pad",
        """
        `tail pad` lets a loop run on over zeros in staged operands. An equation without a sum stages
        nothing. `tail guard` tests each iteration, `tail cut` ends the loop early.
        """,
    ),
    "E0608": code(
        "a tail that is not perfect",
        """
        `tail perfect` states that the factor divides the number of iterations. Here it does not, or
        the number is a size that is not known. The message lists divisors.

            split y: o by 48 -> oo, oi tail perfect        # 469 = 9*48 + 37
            split y: o by 48 -> oo, oi tail cut            # the last iteration of oo is shorter
        """,
    ),
    "E0609": code(
        "fewer than two loops to fuse",
        """
        `fuse` makes one loop out of two or more different ones: `fuse y: n, t -> nt`.
        """,
    ),
    "E0610": code(
        "loops to fuse that do not follow each other",
        """
        `fuse` takes loops that stand directly one inside the other, named from the outside to the
        inside. `order` brings them together:

            order y: n, t, m
            fuse  y: n, t -> nt
        """,
    ),
    "E0611": code(
        "loops of different kinds to fuse",
        """
        A loop over an index of the result and one over a summed index cannot be one, nor can two
        loops that run in different places (`map`). Fuse before you map.
        """,
    ),
    "E0612": code(
        "a loop named twice",
        """
        `order` names loops in the order in which they shall stand, each one once. Loops that it does
        not name keep their places.
        """,
    ),
    "E0613": code(
        "a summed loop in parallel",
        """
        The iterations of a summed loop add to the same result, so they cannot run on the grid or on
        threads at the same time. Map loops over indices of the result.
        """,
    ),
    "E0614": code(
        "a thread loop without a number",
        """
        A workgroup has a fixed number of threads, so a loop on threads needs a number of iterations
        even where sizes are symbols:

            split y: o by 64 -> oo, oi
            map y: oo -> grid, oi -> thread
        """,
    ),
    "E0615": code(
        "no operand to stage",
        """
        `stage` copies a factor of a sum of products, by the name of the tensor that it reads: `x` and
        `w` in `sum[k] x[m, k] * w[k]`. A second factor that reads `x` is `x.2`. Other reductions
        (`max`, `min`, `prod`) have no operands: zeros would change their results.
        """,
    ),
    "E0616": code(
        "staging at a loop of the result",
        """
        A copy is refilled in every iteration of the loop it is staged at, which must be a summed one:
        then the copy is read again by all free loops inside.
        """,
    ),
    "E0617": code(
        "staged twice",
        """
        An operand can have one copy in workgroup memory and one in registers, which is then filled
        from the first. Two in the same memory would hold the same numbers.
        """,
    ),
    "E0618": code(
        "too much to write out",
        """
        Unrolled loops are copied out in the text: up to 64 iterations of one loop, and 4096 copies
        of the innermost statement for all of them together. A loop whose extent is a size cannot be
        unrolled at all: split it by a number and unroll the inner loop.
        """,
    ),
    "E0619": code(
        "a vector loop that is not of four",
        """
        `vectorize` makes the iterations of a loop the lanes of a vec4. Split by 4 and vectorize the
        inner loop:

            split y: o by 4 -> oo, ov
            vectorize y: ov
        """,
    ),
    "E0620": code(
        "a summed loop as a vector",
        """
        The lanes of a vector are results of their own, so only a loop over an index of the result
        can be one.
        """,
    ),
    "E0621": code(
        "no partial sums",
        """
        `partial` adds up the terms of each iteration of a summed loop apart, against rounding errors
        of long sums. It needs a `sum` of floats (integers do not round), one of its summed loops,
        and stands once in an equation.
        """,
    ),
    "E0622": code(
        "a relation that cannot be solved for this variable",
        """
        `solve` puts a summed variable in terms of the others. Its coefficient in the relation must
        be 1 or -1, so that the division is exact everywhere:

            | o*stride + k == l + pad          # l = o*stride + k - pad, or k, but not o
        """,
    ),
    "E0623": code(
        "a relation without phases",
        """
        `phases` splits the relation of one index of the result with coefficient 1, and two summed
        ones, all three from zero and with coefficients that are numbers:

            phases y over o, k -> t, r, j       # l*stride + k*dilation == o + pad

        The message shows the equation. `solve` and `gather` need less.
        """,
    ),
    "E0624": code(
        "a sum without columns",
        """
        `columns` makes all products first and adds them up in a second equation. It needs a sum of
        products of two operands in which each index of a relation stands in one operand alone, and
        an index of the result either in a relation or in an operand.
        """,
    ),
    "E0625": code(
        "a relation changed after its loops",
        """
        `inline`, `gather`, `solve`, `phases`, `columns`, `pack` and `rfactor` rewrite an equation, `pad`
        also those that read its tensor; their loops are then other ones. So these come before the first
        step on the loops (`split`, `fuse`, `order`, `map`, `stage`, `unroll`, `vectorize`, `partial`).
        """,
    ),
    "E0626": code(
        "not exactly one schedule",
        """
        There is at most one schedule for an operator and a target in a file, and `Schedule.parse`
        takes a text with one. Steps run in order: put those of both into one block.
        """,
    ),
    "E0627": code(
        "a schedule for something else",
        """
        `schedule NAME for TARGET { ... }` belongs to the operator NAME and to one target. What was
        given has no schedule for this one, or the target runs kernels that are not scheduled by
        hand.
        """,
    ),
    "E0628": code(
        "a loop that has its place already",
        """
        A loop that is unrolled or vectorized, that an operand is staged at, or that has partial
        sums, cannot be split or fused any more: do that first. One that runs on the grid or on
        threads is neither unrolled nor vectorized; `map y: LOOP -> serial` takes it back.
        """,
    ),
    "E0629": code(
        "more loops than can be told apart",
        """
        A nest has at most 64 loops, and positions in tensors are formulas of at most 2000 names in
        all. Fusing loops of which one was split, and splitting the result by another factor, doubles
        the formulas each time. Split into all that is needed at once, and fuse once.
        """,
    ),
    "E0630": code(
        "nothing, or too much, on threads",
        """
        A scheduled equation runs on the threads of workgroups: one to three of the loops over its
        indices are mapped to `thread`, and as many as you like to `grid`:

            split y: o by 64 -> oo, oi
            map y: oo -> grid, oi -> thread
        """,
    ),
    "E0631": code(
        "accumulators without a number",
        """
        A loop over an index of the result that stands inside a summed loop makes accumulators: one
        for each iteration, in the registers of a thread. Their number must be known when the kernel
        is written. Split the loop by a number, or order it outside the sum.
        """,
    ),
    "E0632": code(
        "too many accumulators",
        """
        The loops over indices of the result inside the sum make more than 512 accumulators a thread.
        No GPU has so many registers; 64 (8 by 8) is a good number. Map a part to threads or to the
        grid.
        """,
    ),
    "E0633": code(
        "a vector loop with loops inside",
        """
        The lanes of a vector are innermost: `order` the loop last. There can be one of them.
        """,
    ),
    "E0634": code(
        "a tail that cannot be treated as it says",
        """
        `tail cut` ends a serial loop where the iterations stop to count: a loop on the grid, on
        threads, unrolled or vectorized runs to its end, and a loop around the other part of the
        split cannot know. `tail pad` lets the loop run on over zeros, and needs every operand that
        depends on it staged. `tail guard` tests each iteration and always works.
        """,
    ),
    "E0635": code(
        "nothing to pack",
        """
        `pack` copies a tensor that the equation reads. The message lists those that there are.
        """,
    ),
    "E0636": code(
        "a tensor read in two shapes",
        """
        `pack` gives the axes of a tensor another order. This equation reads it in two places with
        composite axes split differently, so there is no one list of axes.
        """,
    ),
    "E0637": code(
        "axes that are no order",
        """
        `pack` names each axis of the tensor once, from 0, in the order in which the copy has them:
        `pack y: w by 1, 0 -> w_packed`.
        """,
    ),
    "E0640": code(
        "a loop whose extent depends on another",
        """
        After `gather` a sum runs over the terms that reach a result: how many depends on where the
        result is. Such a loop stays inside the loops that it depends on, is not fused with one of
        them, and does not stand around a tile when it depends on a thread. `phases` has loops of
        fixed extents instead.
        """,
    ),
    "E0641": code(
        "a copy without a number of elements",
        """
        The loops inside the one at which an operand is staged, and of a tile also the loops on
        threads, give the size of the copy. All on which the operand depends must have numbers of
        iterations: split those that are sizes.
        """,
    ),
    "E0642": code(
        "a copy that nothing can hold",
        """
        A copy in registers has at most 512 elements a thread, and a tile at most 65536 (profile
        `webgpu` allows 4096 f32 numbers for all tiles of a kernel together, see E0503). Stage
        further inside, or split the loops inside.
        """,
    ),
    "E0667": code(
        "a step of another target",
        """
        Schedules for WGSL and for NumPy share `split`, `fuse`, `order`, `map` and `partial`, and their
        verbs on relations but for two: `taps` and `layout` are for WGSL, the latter as its zeros meet
        what is not finite in other operands. Workgroups, registers and vectors are of GPUs: `stage`,
        `unroll` and `vectorize` are for WGSL, and loops are mapped to `grid`, `thread` or `serial`
        there. For NumPy loops are mapped to `host`, `slice` or `gemm`, and `compute` says where a
        tensor is made.
        """,
    ),
    "E0668": code(
        "a host loop inside an expression",
        """
        A host loop is a Python loop; the loops mapped to `slice` or `gemm` are the axes of one NumPy
        expression, which it runs in each iteration. So host loops stand outside: `order` them first.
        """,
    ),
    "E0669": code(
        "loops that are no matrix product",
        """
        Loops mapped to `gemm` become one np.matmul: of a sum of products of two operands, with all axes
        of the expression. Which are rows, columns, terms or a batch follows from the operands: a summed
        loop is an index of both, a free one of either. A summed loop that is not (a tap, say) goes to
        the host.
        """,
    ),
    "E0670": code(
        "a range that depends on an axis",
        """
        The axes of a NumPy expression are ranges that do not depend on one another. After `gather` the
        range of the summed loop depends on the result, and `split` leaves a condition on both of its
        loops when its factor does not divide. Map one of the loops that the message names to the host.
        Only an operand of a matrix product beside constants may have such conditions: it is copied.
        """,
    ),
    "E0671": code(
        "partial sums of no host loop",
        """
        In a schedule for NumPy `partial` adds up what each iteration of a *host* loop makes: NumPy sums
        the axes of an expression by itself.
        """,
    ),
    "E0672": code(
        "a tensor that cannot be computed there",
        """
        `compute col at y: n` makes in each iteration of `n` what that iteration reads of `col`. So `y`
        must be the only one that reads it, `n` one of its host loops, and `col` an intermediate tensor,
        a `let` or one that a step made, with an index for each axis.
        """,
    ),
}
