"""Lengths: where the result of one spatial axis begins and ends.

transposed:  LO = (L - 1)*stride - begin - end + dilation*(K - 1) + output_padding + 1
direct:      LO = (L + begin + end - dilation*(K - 1) - 1) // stride + 1
"""

from __future__ import annotations

from convdsl.diagnostics import CdslError
from convdsl.ops.attributes import Window, check_out_pad

Pads = tuple[int, int, int]  # pad_begin, pad_end, out_pad


def transposed_pads(
    window: Window,
    length: int,
    kernel: int,
    output_shape: int | None = None,
    output_size: int | None = None,
) -> Pads:
    """The pads of a transposed convolution over `length` elements.

    `output_shape` (ONNX) crops the uncropped result to that length, whatever `padding` says;
    `output_size` (PyTorch) picks `output_padding`.

    Raises:
        CdslError: E0372 for an output padding out of range, E0375 for a length that cannot be had.
    """
    begin, end = window.padding
    out_pad = window.out_pad
    full = (length - 1) * window.stride + window.dilation * (kernel - 1) + 1
    if output_shape is not None:
        check_out_pad(window)
        total = full + out_pad - output_shape
        if total < 0:
            raise _impossible(
                window, "output_shape", output_shape, (0, full + out_pad), length, kernel
            )
        begin, end = _split(total, upper=window.auto_pad == "SAME_UPPER")
    elif window.auto_pad.startswith("SAME"):
        check_out_pad(window)
        total = full + out_pad - length * window.stride
        begin, end = _split(max(0, total), upper=window.auto_pad == "SAME_UPPER")
        out_pad += max(0, -total)
    elif output_size is not None:
        least = full - begin - end
        picked = output_size - least
        if not 0 <= picked < window.stride:
            possible = (least, least + window.stride - 1)
            raise _impossible(window, "output_size", output_size, possible, length, kernel)
        if out_pad not in (0, picked):
            raise CdslError(
                "E0373",
                f"`output_size`{window.axis} of `{window.op}` asks for output_padding = {picked}, "
                f"but `output_padding` is {out_pad}",
                help="leave `output_padding` out",
            )
        out_pad = picked
    else:
        check_out_pad(window)
    if full - begin - end + out_pad < 0:
        raise _negative(window, length, kernel, (begin, end, out_pad))
    return begin, end, out_pad


def _split(total: int, upper: bool) -> tuple[int, int]:
    """A number of cropped elements at begin and end; the odd one goes to the end if `upper`."""
    half = total // 2
    return (half, total - half) if upper else (total - half, half)


def direct_pads(window: Window, length: int, kernel: int) -> tuple[int, int]:
    """The pads of a convolution over `length` elements.

    Raises:
        CdslError: E0375 when the kernel is longer than the padded data by more than one step.
    """
    begin, end = window.padding
    span = window.dilation * (kernel - 1) + 1
    if window.auto_pad.startswith("SAME"):
        out = -(-length // window.stride)
        total = max(0, (out - 1) * window.stride + span - length)
        begin, end = _split(total, upper=window.auto_pad == "SAME_UPPER")
    out = (length + begin + end - span) // window.stride + 1
    if out < 0:
        filled = (
            "(L + begin + end - dilation*(K - 1) - 1) // stride + 1 = "
            f"({length} + {begin} + {end} - {window.dilation}*({kernel} - 1) - 1) "
            f"// {window.stride} + 1 = {out}"
        )
        raise CdslError(
            "E0375",
            f"the output length{window.axis} of `{window.op}` would be {out}",
            notes=(filled,),
            help="the kernel is longer than the padded data: pad more, or dilate less",
        )
    return begin, end


def _formula(window: Window, length: int, kernel: int, pads: Pads) -> str:
    begin, end, out_pad = pads
    value = (
        (length - 1) * window.stride - begin - end + window.dilation * (kernel - 1) + out_pad + 1
    )
    return (
        "(L - 1)*stride - begin - end + dilation*(K - 1) + output_padding + 1 = "
        f"({length} - 1)*{window.stride} - {begin} - {end} + {window.dilation}*({kernel} - 1) + "
        f"{out_pad} + 1 = {value}"
    )


def _negative(window: Window, length: int, kernel: int, pads: Pads) -> CdslError:
    out = (
        (length - 1) * window.stride
        - pads[0]
        - pads[1]
        + window.dilation * (kernel - 1)
        + pads[2]
        + 1
    )
    return CdslError(
        "E0375",
        f"the output length{window.axis} of `{window.op}` would be {out}",
        notes=(_formula(window, length, kernel, pads),),
        help=f"`padding` may crop at most {out + pads[0] + pads[1]} elements",
    )


def _impossible(
    window: Window, name: str, asked: int, possible: tuple[int, int], length: int, kernel: int
) -> CdslError:
    pads = (0, 0, window.out_pad) if name == "output_shape" else (*window.padding, 0)
    low, high = possible
    return CdslError(
        "E0375",
        f"`{name}`{window.axis} of `{window.op}` is {asked}, possible are {low} to {high}",
        notes=(_formula(window, length, kernel, pads),),
        help="an output can be cropped to a shorter one by `padding`"
        if asked < low
        else "a longer output needs a larger stride, kernel or dilation",
    )
