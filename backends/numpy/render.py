"""Bodies of generated code as lines of text, long statements wrapped."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from itertools import pairwise

from convdsl.backends.numpy.code import Blank, Comment, Item, Suite

WIDTH = 100


def render(items: Sequence[Item], indent: int = 0) -> list[str]:
    """The lines of a body."""
    pad, out = " " * indent, []
    for item in items:
        match item:
            case Comment(comment):
                out += [f"{pad}# {line}".rstrip() for line in printable(comment)]
            case Blank():
                out.append("")
            case Suite(header, body, doc, orelse):
                out += _wrap(_header(header), pad)
                inner = render(body, indent + 4)
                if doc:
                    inner = docstring(doc, " " * (indent + 4)) + inner
                out += inner or [f"{pad}    pass"]
                if orelse:
                    out += [f"{pad}else:", *render(orelse, indent + 4)]
            case _:
                out += _wrap(quoted(ast.unparse(item)), pad)
    return out


def quoted(line: str) -> str:
    """Single quotes to double ones, where that is all there is to it."""
    return line if '"' in line or "\\" in line else line.replace("'", '"')


def names_in(items: Sequence[Item]) -> set[str]:
    """All variables that a body mentions."""
    return {n.id for n in _nodes(items) if isinstance(n, ast.Name)}


def augmented(items: Sequence[Item]) -> list[str]:
    """Variables of `v += ..` that a body gives no value itself."""
    changed, bound = set[str](), set[str]()
    for node in _nodes(items):
        match node:
            case ast.AugAssign(ast.Name(name)):
                changed.add(name)
            case ast.Assign([ast.Name(name)]):
                bound.add(name)
            case _:
                pass
    return sorted(changed - bound)


def has_products(items: Sequence[Item]) -> bool:
    """Whether a body calls BLAS."""
    return any(isinstance(n, ast.Attribute) and n.attr in ("matmul", "dot") for n in _nodes(items))


def _nodes(items: Sequence[Item]) -> Iterator[ast.AST]:
    for item in items:
        match item:
            case Suite(header, body, _, orelse):
                yield from ast.walk(header)
                yield from _nodes(body)
                yield from _nodes(orelse)
            case ast.stmt():
                yield from ast.walk(item)
            case _:
                pass


def _header(node: ast.For | ast.If | ast.FunctionDef) -> str:
    node.body = [ast.Pass()]
    return quoted(ast.unparse(node)).rsplit("\n", 1)[0]


def docstring(content: str, pad: str = "") -> list[str]:
    """Lines of a docstring, with nothing in it that could end it."""
    lines = [line.replace("\\", "/").replace('"', "'") for line in printable(content)]
    if len(lines) == 1:
        return [f'{pad}"""{lines[0]}"""']
    return [f'{pad}"""{lines[0]}', *((pad + line).rstrip() for line in lines[1:]), f'{pad}"""']


def printable(content: str) -> list[str]:
    """The lines of a text, control and other invisible characters replaced."""
    lines = content.splitlines() or [""]
    return ["".join(ch if ch.isprintable() else " " for ch in line) for line in lines]


def _wrap(line: str, pad: str) -> list[str]:
    """A statement over several lines where it is too long, checked to mean the same."""
    if "\n" in line:
        return [pad + part for part in line.split("\n")]
    if len(pad) + len(line) <= WIDTH:
        return [pad + line]
    lines = _split(line, len(pad))
    body = "\n".join(lines)
    tail = "\n    pass" if line.endswith(":") else ""
    if ast.dump(ast.parse(body + tail)) != ast.dump(ast.parse(line + tail)):
        return [pad + line]
    return [pad + part for part in lines]


def _split(line: str, used: int) -> list[str]:
    """Black's way: the content of the widest outer bracket on lines of its own, cut at commas."""
    spans = _brackets(line)
    spans = [s for s in spans if s[1] - s[0] > 2 and not (s[1] - s[0] < 12 and len(spans) > 1)]
    if used + len(line) <= WIDTH or not spans:
        return [line]
    start, end, commas = max(spans, key=lambda s: s[1] - s[0])
    head, tail, body = line[: start + 1], line[end:], line[start + 1 : end]
    if used + 4 + len(body) + (1 if commas else 0) <= WIDTH:
        return [head, f"    {body}", tail]
    cuts = [start, *commas, end]
    pieces = [line[a + 1 : b].strip() for a, b in pairwise(cuts)]
    trailing = "," if commas else ""
    out = [head]
    for piece in filter(None, pieces):
        out += ["    " + part for part in _split(piece + trailing, used + 4)]
    return [*out, tail]


def _brackets(line: str) -> list[tuple[int, int, list[int]]]:
    """Outermost bracket pairs with the positions of the commas directly inside."""
    out: list[tuple[int, int, list[int]]] = []
    depth, start, commas, quote = 0, 0, list[int](), ""
    skip = False
    for at, ch in enumerate(line):
        if skip:
            skip = False
        elif quote:
            skip, quote = ch == "\\", "" if ch == quote else quote
        elif ch in "'\"":
            quote = ch
        elif ch in "([{":
            if depth == 0:
                start, commas = at, []
            depth += 1
        elif ch in ")]}":
            depth -= 1
            if depth == 0:
                out.append((start, at, commas))
        elif ch == "," and depth == 1:
            commas.append(at)
    return out
