"""Integer expressions of the surface syntax: sizes, `where` clauses, ranges and relations.

Three readings of the same tree: `to_index` makes it an `Index`, `evaluate` computes it exactly and
checks every intermediate value, `show` prints it, with numbers for names if wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from convdsl.diagnostics import CdslError, Span
from convdsl.ir.index import Index, const, floordiv, maximum, minimum, modulo
from convdsl.syntax import ast
from convdsl.syntax.walk import walk

INT64 = 2**63
Lookup = Callable[[ast.Ref], Index]


def parse_int(number: ast.Number) -> int:
    """The value of an integer literal.

    Raises:
        CdslError: E0215 when it is written as a float, E0307 when it does not fit 64 bits.
    """
    if not number.text.isdigit():
        raise CdslError(
            "E0215",
            f"`{number.text}` is not an integer",
            number.span,
            help="sizes, `where` clauses, ranges and relations are integer arithmetic",
        )
    digits = number.text.lstrip("0") or "0"
    if len(digits) > 19 or int(digits) >= INT64:  # the length first: int() of a long text is slow
        raise CdslError("E0307", "this integer does not fit 64 bits", number.span)
    return int(digits)


def to_index(expr: ast.Expr, lookup: Lookup) -> Index:
    """The expression as an `Index`; `lookup` gives the meaning of a name or raises.

    Raises:
        CdslError: E0215 for what is not integer arithmetic, E0308 for a literal divisor below 1.
    """
    match expr:
        case ast.Number():
            return const(parse_int(expr))
        case ast.Ref():
            return lookup(expr)
        case ast.Negate(operand):
            return -to_index(operand, lookup)
        case ast.Binary(op, left, right):
            a, b = to_index(left, lookup), to_index(right, lookup)
            match op:
                case "+":
                    return a + b
                case "-":
                    return a - b
                case "*":
                    return a * b
                case "//" | "%":
                    divisor = b.as_int()
                    if divisor is not None and divisor < 1:
                        raise _divisor(op, divisor, right.span)
                    return floordiv(a, b) if op == "//" else modulo(a, b)
                case "/":
                    raise CdslError(
                        "E0215",
                        "`/` is not integer arithmetic",
                        expr.span,
                        help="write `//` for floor division",
                    )
        case ast.Call(name, args) if name in ("min", "max"):
            if len(args) < 2:
                raise CdslError("E0214", f"`{name}` takes two or more arguments", expr.span)
            parts = [to_index(_plain(a), lookup) for a in args]
            return minimum(*parts) if name == "min" else maximum(*parts)
        case _:
            raise CdslError(
                "E0215",
                "this is not an integer expression",
                expr.span,
                help="it has + - * // % min max over integers, sizes and int parameters",
            )


def evaluate(expr: ast.Expr, env: Mapping[str, int]) -> int:
    """The exact value; the expression has passed `to_index`.

    Raises:
        CdslError: E0307 when a value passes 64 bits, E0308 for a divisor below 1.
        KeyError: a name without a value.
    """
    match expr:
        case ast.Number():
            value = parse_int(expr)
        case ast.Ref(name):
            value = env[name]
        case ast.Negate(operand):
            value = -evaluate(operand, env)
        case ast.Binary(op, left, right):
            a, b = evaluate(left, env), evaluate(right, env)
            if op in ("//", "%") and b < 1:
                raise _divisor(op, b, right.span, f"{show(right)} = {show(right, env)}")
            value = {"+": a + b, "-": a - b, "*": a * b}[op] if op in "+-*" else _divide(op, a, b)
        case ast.Call(name, args):
            parts = [evaluate(_plain(a), env) for a in args]
            value = min(parts) if name == "min" else max(parts)
        case _:
            raise CdslError("E0215", "this is not an integer expression", expr.span)
    if not -INT64 <= value < INT64:
        raise CdslError(
            "E0307",
            f"`{show(expr)}` does not fit 64 bits",
            expr.span,
            notes=(f"{show(expr, env)} = {value}",),
        )
    return value


def _divide(op: str, a: int, b: int) -> int:
    return a // b if op == "//" else a % b


def _divisor(op: str, value: int, span: Span, note: str = "") -> CdslError:
    return CdslError(
        "E0308",
        f"the right side of `{op}` is {value}; it must be positive",
        span,
        notes=(note,) if note and note != f"{value} = {value}" else (),
    )


def _plain(arg: ast.Expr | ast.Comparison) -> ast.Expr:
    if isinstance(arg, ast.Comparison):
        raise CdslError(
            "E0215", "a comparison is not an integer", arg.span, help="it stands only in `select`"
        )
    return arg


def refs(expr: ast.Expr | ast.Comparison) -> Iterator[ast.Ref]:
    """All names in an integer expression, in order of appearance."""
    return (node for node in walk(expr) if isinstance(node, ast.Ref))


def names_of(chain: ast.Chain) -> tuple[str, ...]:
    """The names of a clause, each once, in order of appearance."""
    return tuple(dict.fromkeys(r.name for operand in chain.operands for r in refs(operand)))


def show(expr: ast.Expr | ast.Comparison, env: Mapping[str, int] | None = None) -> str:
    """The expression as text; with `env`, names that it has are printed as their numbers."""
    return _show(expr, env or {})[0]


_SUM, _PRODUCT, _UNARY, _ATOM = range(4)


def _show(expr: ast.Expr | ast.Comparison, env: Mapping[str, int]) -> tuple[str, int]:
    """The text and how tightly its outermost operator binds."""
    match expr:
        case ast.Number(text):
            return text, _ATOM
        case ast.Ref(name):
            value = env.get(name, name)
            return (
                (f"({value})", _ATOM)
                if isinstance(value, int) and value < 0
                else (str(value), _ATOM)
            )
        case ast.Negate(operand):
            return "-" + _wrap(operand, env, _UNARY), _UNARY
        case ast.Binary(op, left, right):
            level = _SUM if op in "+-" else _PRODUCT
            # The right operand of a left-associative operator binds tighter, except in a*(b*c).
            tight = level if op in ("+", "*") and _same(op, right) else level + 1
            joint = "*" if op == "*" else f" {op} "
            return _wrap(left, env, level) + joint + _wrap(right, env, tight), level
        case ast.Call(name, args):
            return f"{name}({', '.join(show(a, env) for a in args)})", _ATOM
        case _:
            return expr.span.source.text[expr.span.start : expr.span.end], _ATOM


def _same(op: str, expr: ast.Expr) -> bool:
    return isinstance(expr, ast.Binary) and expr.op == op


def _wrap(expr: ast.Expr, env: Mapping[str, int], least: int) -> str:
    text, level = _show(expr, env)
    return text if level >= least else f"({text})"
