"""A layer as an ONNX model, its constants as initialisers."""

from __future__ import annotations

from typing import Any

from convdsl.bench.contestant import Unfit
from convdsl.bench.data import Data
from convdsl.bench.error import number
from convdsl.bench.layer import Convolution, Layer, Product

OPSET, IR = 17, 8  # what every runtime of the last years reads


def model_of(onnx: Any, layer: Layer, data: Data) -> bytes:
    """The serialised model; its inputs are what varies, its output is `y`.

    Raises:
        Unfit: for a layer that no node of ONNX computes.
    """
    helper, float32 = onnx.helper, onnx.TensorProto.FLOAT
    output = layer.system().output
    shape = [number(e) for e in output.shape]
    inputs = [
        helper.make_tensor_value_info(name, float32, list(array.shape))
        for name, array in data.sets[0].items()
    ]
    constants = [onnx.numpy_helper.from_array(a, name) for name, a in data.constants.items()]
    graph = helper.make_graph(
        _nodes(helper, layer),
        layer.op.name,
        inputs,
        [helper.make_tensor_value_info("y", float32, shape)],
        constants,
    )
    opset = [helper.make_opsetid("", OPSET)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=IR)
    text: bytes = model.SerializeToString()
    return text


def _nodes(helper: Any, layer: Layer) -> list[Any]:
    known = layer.known
    if isinstance(known, Product):
        return [helper.make_node("MatMul", ["a", "b"], ["y"])]
    if not isinstance(known, Convolution):
        raise Unfit("no node of ONNX computes this operator")
    attributes: dict[str, Any] = {
        "strides": [known.stride], "dilations": [known.dilation], "group": known.groups,
        "pads": [known.begin, known.end],
    }  # fmt: skip
    nodes, x = [], "x"
    if known.slope is not None:
        nodes.append(helper.make_node("LeakyRelu", ["x"], ["positive"], alpha=known.slope))
        x = "positive"
    if known.transposed:
        attributes["output_padding"] = [known.out_pad]
    bias = ["b"] if "b" in (*layer.constant, *layer.varying) else []
    kind = "ConvTranspose" if known.transposed else "Conv"
    return [*nodes, helper.make_node(kind, [x, "w", *bias], ["y"], **attributes)]
