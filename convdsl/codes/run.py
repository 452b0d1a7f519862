"""E035x: compiling for a target and calling kernels. E036x: files of kernels and arrays."""

from __future__ import annotations

from convdsl.codes.code import Code, code

TABLE: dict[str, Code] = {
    "E0351": code(
        "unknown target",
        """
        A target is what an operator is compiled to: `numpy` and `wgsl` ship with convdsl, and other
        packages may register more under the entry point group `convdsl.backends`.
        """,
    ),
    "E0352": code(
        "wrong arguments of a kernel",
        """
        A kernel takes the operator's inputs in the order of their declaration, or by name; those
        that were bound are left out. Inputs with a default may be left out or None:

            kernel(x, w)            # b: f32[M] = 0 is absent
            kernel(x, w=w, b=b)
            kernel.bind(w=w)(x)

        An input that is left out costs nothing: the generated text does not read it. One that
        `compile(..., absent=("b",))` names cannot be given at all.
        """,
    ),
    "E0353": code(
        "not an array in host memory",
        """
        Inputs are NumPy arrays, or anything with `__array__`, the buffer protocol or DLPack, in
        the memory of the CPU. A tensor on a GPU is copied first, like `x.cpu()`; a tensor that
        `kernel.upload` returned goes to `kernel.run`.
        """,
    ),
    "E0354": code(
        "array of another dtype",
        """
        An f32 input takes float32 (and float16, which widens without loss), f16 takes float16, and
        i32 takes int32, in the byte order of the machine. Nothing else is converted silently:
        NumPy's default is float64, and rounding it is a decision of the caller.

            kernel(x.astype(numpy.float32))
        """,
    ),
    "E0355": code(
        "`out` cannot take the result",
        """
        `out=` takes an array of exactly the result's shape and dtype, of any strides, that can be
        written and shares no memory with an input. Inputs are never written.
        """,
    ),
    "E0356": code(
        "sizes are not known yet",
        """
        `kernel.source`, `.plan`, `.stages` and `.save` show a compiled text, and the text depends
        on the sizes. A kernel without sizes is compiled for the shapes of each call, so call it
        once, or say what the sizes are:

            convdsl.compile("op.cdsl", sizes={"N": 1, "C": 64, "L": 100, "K": 16, "M": 1})
            convdsl.compile("op.cdsl", dynamic=["N", "C", "L", "K", "M"])     # one text for all
        """,
    ),
    "E0357": code(
        "not a kernel on a device",
        """
        `kernel.upload`, `kernel.run` and `kernel.time` work with tensors in the memory of a GPU, so
        they need `target="wgsl"`. Kernels of every target are called with arrays: `kernel(x, w)`.
        """,
    ),
    "E0358": code(
        "wrong option of compile",
        """
        `accuracy` is strict, standard or fast, `algorithm` None (which chooses), gather, phases or
        columns. `dynamic` names sizes that stand on axes of inputs and have no number in `sizes`; a
        size that `where` defines is then dynamic by itself, and cannot be given. `cap` is a number of
        bytes.
        """,
    ),
    "E0360": code(
        "cannot write",
        """
        The system refuses to write a file or to make a folder; the message has its reason. Files
        are written beside their place and moved there when they are complete, so nothing is ever
        half written: what was there before is still there.
        """,
    ),
    "E0361": code(
        "not a saved kernel",
        """
        `convdsl.load_kernel` reads a folder that `kernel.save` or `convdsl compile -o` wrote: the
        generated files and a `manifest.json`. The manifest is missing, is that of something else,
        or has a format of another version of convdsl.
        """,
    ),
    "E0362": code(
        "a saved kernel was changed",
        """
        Each file of a saved kernel stands in the manifest with its hash, and one of them is missing
        or has another content now. What is edited by hand is no longer what the operator means:
        change the operator, compile and save it again. A generated NumPy module, edited or not,
        runs without convdsl: import it.
        """,
    ),
    "E0363": code(
        "this convdsl generates another text",
        """
        A saved kernel is compiled again when it is loaded, and the result is compared with the
        files, so that what runs is what was looked at. Another version of convdsl may generate
        another text, and so does `limits="adapter"` on another machine. Compile and save it again;
        the operator's text is in the manifest under `program`.
        """,
    ),
    "E0364": code(
        "not a .npy file to use",
        """
        Arrays are read from files that `numpy.save` wrote, one array of real numbers each. Refused
        are archives (.npz), files that are cut off, and arrays of Python objects: these are stored
        as pickles, and reading a pickle can run any code.
        """,
    ),
    "E0365": code(
        "the shape of a random input is not known",
        """
        `convdsl run --random w` finds the shape of w from the sizes on its axes. They follow from
        the other inputs and from `-D`; one of them is still open:

            convdsl run conv1d.cdsl --input x=x.npy --random w -D M=8 -D K=3
        """,
    ),
    "E0366": code(
        "the file exists",
        """
        `convdsl new` never writes over something. Choose another name, or move the file away.
        """,
    ),
}
