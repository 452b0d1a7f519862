"""E037x: the functions of `convdsl.ops`."""

from __future__ import annotations

from convdsl.codes.code import Code, code

TABLE: dict[str, Code] = {
    "E0370": code(
        "an attribute of the wrong type",
        """
        Attributes like `stride` are integers: no bool, no float, no text. Operators over two axes
        take one for both, or one an axis. `padding` is an integer, or a pair for begin and end:

            ops.conv_transpose1d(x, w, stride=2, padding=(1, 0))
            ops.conv2d(x, w, stride=(2, 1), padding=((1, 0), (1, 1)))
        """,
    ),
    "E0371": code(
        "no such choice",
        """
        The attribute takes one of a few words, which the message lists. Layouts, for example, are
        declared and never guessed from shapes or strides:

            ops.conv_transpose1d(x, w, layout="NLC")
        """,
    ),
    "E0372": code(
        "an attribute out of range",
        """
        Strides, dilations and groups are at least 1, padding is not negative, and `output_padding`
        is less than the stride or the dilation: it chooses among the output lengths that a
        convolution with the same stride maps to one input length; there are `stride` of them.

        In a text of the language pads may be negative: they add positions that no input reaches.
        """,
    ),
    "E0373": code(
        "attributes that contradict each other",
        """
        Two attributes say where the output begins and ends. `auto_pad` other than "NOTSET" replaces
        `padding`; `output_size` (PyTorch) picks `output_padding`; `output_shape` (ONNX) crops to a
        length whatever `padding` says. Give one of them. `padding="same"` needs a stride of 1, for
        other strides there is `auto_pad="SAME_UPPER"`.
        """,
    ),
    "E0374": code(
        "arrays that do not fit together",
        """
        The orders of the axes are those of PyTorch and ONNX:

            conv_transpose1d    x [N, C, L]    w [C, M / groups, K]    b [M]    y [N, M, LO]
            conv1d              x [N, C, L]    w [M, C / groups, K]    b [M]    y [N, M, LO]

        `groups` divides the channels. With layout "NLC" x and y have their channels last, w does
        not change. The message says which numbers disagree.
        """,
    ),
    "E0375": code(
        "a length that cannot be had",
        """
        The output length follows from the attributes; the message shows the formula with numbers.
        Either it came out below zero, because more is cropped than there is, or the length asked
        for by `output_shape` or `output_size` is none of those that exist: `output_shape` crops, so
        it is at most the uncropped length, and `output_size` adds fewer than `stride` positions.
        """,
    ),
}
