"""Files of layers, like the one that ships: `suite.json`.

    {"schema": 1, "op": "conv_transpose1d", "cases": [{"name": "up1", "N": 1, "c_in": 512, ...}]}

A case has the numbers of its op (`conv_transpose1d`, `conv1d` or `matmul`; a case may name its own
`op`), and may have `source`, `bias` and `prologue` (`leaky_relu:0.1`). Only f32.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from math import isfinite
from pathlib import Path
from typing import Any

from convdsl.bench.layer import Layer, Number, make_layer
from convdsl.diagnostics import CdslError
from convdsl.ops.sources import program

LARGEST = 1 << 24  # bytes of a suite
# The integers that a case of an op must have, and may have with their values when it has not.
_SIZES = {"N": 1, "c_in": 1, "L": 0, "c_out": 1, "K": 1}
_CONVOLUTION = {"stride": 1, "dilation": 1, "groups": 1}
_OPS: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    "conv_transpose1d": (_SIZES, _CONVOLUTION | {"output_padding": 0}),
    "conv1d": (_SIZES, _CONVOLUTION),
    "matmul": ({"M": 0, "N": 0, "K": 0}, {}),
}


def read_suite(path: Path | None) -> list[Layer]:
    """The layers of a suite, by default of the one that ships.

    Raises:
        CdslError: E0902 for what is no suite, E0903 for a case that is not right.
    """
    name = "suite.json" if path is None else str(path)
    try:
        if path is None:
            data = files("convdsl.bench").joinpath(name).read_bytes()
        else:
            with path.open("rb") as file:
                data = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise CdslError("E0902", f"cannot read the suite `{name}`: {reason}") from None
    if len(data) > LARGEST:
        raise CdslError("E0902", f"the suite `{name}` has more than {LARGEST} bytes")
    try:
        record = json.loads(data)
    except (ValueError, RecursionError) as error:
        reason = str(error).split("\n")[0]
        raise CdslError("E0902", f"the suite `{name}` is not JSON: {reason}") from None
    return _layers(name, record)


def choose(layers: Sequence[Layer], names: Sequence[str]) -> list[Layer]:
    """The layers of these names, in the order of the suite; all for no names.

    Raises:
        CdslError: E0904 for a name that is not there.
    """
    from convdsl.cli.options import closest

    known = [layer.name for layer in layers]
    for name in names:
        if name not in known:
            close = closest(name, known)
            raise CdslError(
                "E0904",
                f"the suite has no layer `{name}`",
                notes=(f"its layers: {', '.join(known)}",),
                help=f"did you mean `{close}`?" if close else None,
            )
    return [layer for layer in layers if not names or layer.name in names]


def _layers(name: str, record: Any) -> list[Layer]:
    cases = record.get("cases") if isinstance(record, dict) else None
    if not isinstance(cases, list) or not cases:
        help = 'a suite is {"schema": 1, "op": NAME, "cases": [...]}'
        raise CdslError("E0902", f"`{name}` has no list of `cases`", help=help)
    if record.get("schema") != 1:
        found = record.get("schema")
        raise CdslError("E0902", f"the suite `{name}` has schema {found!r}, known is 1")
    layers: list[Layer] = []
    for number, case in enumerate(cases):
        if not isinstance(case, dict) or not isinstance(case.get("name"), str):
            raise CdslError("E0903", f"case {number} of `{name}` has no `name`")
        if case["name"] in [layer.name for layer in layers]:
            raise CdslError("E0903", f"`{name}` has two cases `{case['name']}`")
        try:
            layers.append(_layer(case, case.get("op", record.get("op"))))
        except CdslError as error:
            message = f"case `{case['name']}`: {error.message}"
            raise CdslError(
                error.code, message, error.span, notes=error.notes, help=error.help
            ) from None
    return layers


def _layer(case: Mapping[str, Any], op: Any) -> Layer:
    if not isinstance(op, str) or op not in _OPS:
        raise _wrong(f"`op` is {op!r}", f"choose one of: {', '.join(_OPS)}")
    needed, optional = _OPS[op]
    numbers: dict[str, int] = {}
    for field in (*needed, *optional):
        value = case.get(field, optional.get(field))
        least = needed.get(field, 0 if field == "output_padding" else 1)
        if type(value) is not int or value < least:
            raise _wrong(f"`{field}` is {value!r}", f"an integer, at least {least}")
        numbers[field] = value
    if case.get("dtype", "f32") != "f32":
        raise _wrong(f"`dtype` is {case['dtype']!r}", "only f32 is known")
    source = str(case.get("source", ""))
    if op == "matmul":
        return make_layer(case["name"], source, program(op), {}, numbers)
    if numbers["c_in"] % numbers["groups"] or numbers["c_out"] % numbers["groups"]:
        channels = f"{numbers['c_in']} and {numbers['c_out']} channels"
        raise _wrong(f"{channels} do not make {numbers['groups']} groups", None)
    return _convolution(case, op, source, numbers)


def _convolution(case: Mapping[str, Any], op: str, source: str, numbers: dict[str, int]) -> Layer:
    padding, groups = case.get("padding", [0, 0]), numbers["groups"]
    if not isinstance(padding, list) or [type(p) for p in padding] != [int, int]:
        raise _wrong(f"`padding` is {padding!r}", "two integers, [begin, end]")
    params: dict[str, Number] = {n: numbers[n] for n in ("stride", "dilation", "groups")}
    params |= {"pad_begin": padding[0], "pad_end": padding[1]}
    if "output_padding" in numbers:
        params["out_pad"] = numbers["output_padding"]
    before = None
    if (prologue := case.get("prologue")) is not None:
        before = "leaky_relu"
        params["slope_before"] = _slope(prologue)
    sizes = {"N": numbers["N"], "C": numbers["c_in"] // groups, "L": numbers["L"]}
    sizes |= {"M": numbers["c_out"] // groups, "K": numbers["K"]}
    bias = ["b"] if case.get("bias", False) is True else []
    tree = program(op, before=before)
    return make_layer(case["name"], source, tree, params, sizes, varying=["x"], constant=bias)


def _slope(prologue: Any) -> float:
    """The number in `leaky_relu:0.1`."""
    word, _, number = str(prologue).partition(":")
    try:
        slope = float(number)
    except ValueError:
        slope = float("nan")
    if word != "leaky_relu" or not isfinite(slope):
        raise _wrong(f"`prologue` is {prologue!r}", "known is leaky_relu:SLOPE")
    return slope


def _wrong(what: str, help: str | None) -> CdslError:
    return CdslError("E0903", what, help=help)
