"""The shipped operators: ready functions, and their texts.

ops.conv_transpose1d(x, w, stride=2, padding=1)       the functions, signatures as in PyTorch
ops.names(), ops.source("softmax")                    the texts, to read, change and compile
"""

from __future__ import annotations

from convdsl.ops.conv import conv1d, conv2d, conv_transpose1d, conv_transpose2d, matmul
from convdsl.ops.sources import names, source

__all__ = [
    "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d", "matmul", "names", "source",
]  # fmt: skip
