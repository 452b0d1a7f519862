"""E090x: measuring, `convdsl bench`."""

from __future__ import annotations

from convdsl.codes.code import Code, code

TABLE: dict[str, Code] = {
    "E0901": code(
        "a package for measuring is missing",
        """
        The libraries that `convdsl bench --vs` puts beside convdsl are no part of it, and neither is
        what limits NumPy's threads. They come with an extra:

            pip install 'convdsl[bench]'

        `--vs onnxruntime-webgpu` needs the package onnxruntime-webgpu in place of onnxruntime. Of
        several peers those that are missing are left out with a note; it is an error when none is
        there.
        """,
    ),
    "E0902": code(
        "not a suite of layers",
        """
        A suite is a JSON file with the layers to measure. The one that ships has this form:

            {"schema": 1, "op": "conv_transpose1d", "cases": [
              {"name": "up1", "N": 1, "c_in": 512, "L": 400, "c_out": 256, "K": 16,
               "stride": 8, "padding": [4, 4]}
            ]}
        """,
    ),
    "E0903": code(
        "a layer of a suite is not right",
        """
        A case of a suite has a `name` of its own and the numbers of its `op`. conv_transpose1d and
        conv1d: `N`, `c_in`, `L`, `c_out`, `K`, and where they are not 1 or 0 `stride`, `dilation`,
        `groups`, `padding` ([begin, end]) and `output_padding`; `bias` and `prologue`
        ("leaky_relu:0.1") if it has them. matmul: `M`, `N`, `K`.
        """,
    ),
    "E0904": code(
        "no layer of that name",
        """
        `convdsl bench --layers a,b` names layers of the suite; the message lists them.
        """,
    ),
}
