"""Rules that every emitted WGSL text obeys, checked without a compiler.

    check_wgsl_text(text)                     raises AssertionError with all problems found
    check_wgsl_text(text, divisions=False)    also: no integer / or % in an innermost loop that
                                              does not depend on that loop's variable

What one compiler accepts another refuses: barriers under a thread's condition, workgroup sizes
that are not plain numbers, names that are reserved, constants that overflow. So the rules are the
strictest ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from convdsl.backends.wgsl.names import RESERVED
from tests.wgsl_syntax import Function, Node, Tokens, functions, tokens

_BARRIERS = frozenset({"workgroupBarrier", "storageBarrier", "workgroupUniformLoad"})
_NOT_UNIFORM = frozenset({"local_invocation_id", "local_invocation_index", "global_invocation_id"})
_NAME = re.compile(r"[A-Za-z_]\w*")
_FLOAT = re.compile(r"\d+\.\d*([eE][+-]?\d+)?[fh]?|\d+[eE][+-]?\d+[fh]?|\d+[fh]")
_ASSIGN = frozenset({"=", "+=", "-=", "*=", "/=", "%=", "++", "--"})


def check_wgsl_text(text: str, *, divisions: bool = True) -> None:
    """Fail with every rule that the text breaks."""
    found = list(problems(text, divisions=divisions))
    assert not found, "\n".join(found) + "\n\n" + text


def problems(text: str, *, divisions: bool = True) -> Iterator[str]:
    """What is wrong with a text, one line each."""
    source = tokens(text)
    for opening, closing in ("()", "[]", "{}"):
        if source.count(opening) != source.count(closing):
            yield f"{source.count(opening)} {opening} and {source.count(closing)} {closing}"
            return
    yield from _words(source, text)
    for function in functions(text):
        yield from _workgroup_size(function)
        yield from _Flow(text, function).problems()
        yield from _indices(function.name, function.body)
        if not divisions:
            yield from _divisions(function.name, function.body)


# -- words and numbers -----------------------------------------------------------------------------
def _words(source: Tokens, text: str) -> Iterator[str]:
    half = any(t == "f16" for n, t in enumerate(source) if source[n - 1] != "enable")
    enabled = [source[n + 1] for n, t in enumerate(source[:-1]) if t == "enable"]
    if half and "f16" not in enabled:
        yield "f16 is used but not enabled"
    for name in enabled:
        if name != "f16" or not half:
            yield f"enable {name} is not needed"
    for before, name in pairwise(source):
        if before in ("let", "fn", "struct", "const", "override", "alias") and name in RESERVED:
            yield f"{before} {name}: a reserved word"
    for name in re.findall(r"\bvar(?:<[^>]*>)?\s+(\w+)", text):
        if name in RESERVED:
            yield f"var {name}: a reserved word"
    for n, token in enumerate(source):
        if token.startswith("__"):
            yield f"{token} starts with two underscores"
        if token in ("inf", "nan", "NaN", "Infinity"):
            yield f"{token} is no number"
        if token.isdigit() and int(token) > 2**31 - (source[n - 2 : n] != ["(", "-"]):
            yield f"{token} does not fit in an i32"
        if _FLOAT.fullmatch(token) and float(token.rstrip("fh")) > 3.4028235677973366e38:
            yield f"{token} does not fit in an f32"


def _workgroup_size(function: Function) -> Iterator[str]:
    attributes = function.attributes
    if "workgroup_size" in attributes:
        start = attributes.index("workgroup_size")
        inside = attributes[start + 2 : attributes.index(")", start)]
        if not all(t.isdigit() or t == "," for t in inside):
            yield f"{function.name}: workgroup size {' '.join(inside)} is not plain numbers"
    elif "compute" in attributes:
        yield f"{function.name}: no workgroup size"


# -- uniform control flow -------------------------------------------------------------------------
class _Flow:
    """Follows which names may differ between the threads of a workgroup."""

    def __init__(self, text: str, function: Function) -> None:
        self._function = function
        memory = re.findall(r"\bvar<(?:storage[^>]*|workgroup|private)>\s*(\w+)", text)
        self._varies = set(memory)
        parameters = function.parameters
        for n, token in enumerate(parameters):
            if token in _NOT_UNIFORM:
                self._varies.add(parameters[n + 2])
        self._found: list[str] = []

    def problems(self) -> list[str]:
        size = -1
        while size != len(self._varies):  # a loop may carry a name back to its start
            size = len(self._varies)
            self._found = []
            self._leaves = False
            self._block(self._function.body, False)
        return self._found

    def _block(self, body: list[Node], uneven: bool) -> bool:
        """Whether a thread may leave in it, so that what follows is not reached by all."""
        left = False
        for node in body:
            left = self._node(node, uneven or left) or left
        return left

    def _node(self, node: Node, uneven: bool) -> bool:
        if node.kind == "simple":
            return self._simple(node.head, uneven)
        if node.kind in ("for", "while"):
            if node.kind == "for":
                self._simple(node.head[: node.head.index(";")], uneven)
            differs = uneven or self._differs(node.head)
            if differs and node.kind == "for":
                self._varies.update(_assigned(node.head[: node.head.index(";")]))
            left = self._block(node.parts[0], differs)
            if left:  # some threads are out of this turn of the loop: the next one is not even
                left = self._block(node.parts[0], True)
            return left
        differs = uneven or self._differs(node.head)
        leaves = [self._block(part, differs) for part in node.parts]
        return any(leaves)

    def _simple(self, head: Tokens, uneven: bool) -> bool:
        if uneven:
            self._found += [
                f"{self._function.name}: {t} where not all threads come"
                for t in head
                if t in _BARRIERS
            ]
        if head and head[0] in ("return", "break", "continue", "discard"):
            return uneven
        names = _assigned(head)
        if names and (uneven or self._differs(head)):
            self._varies.update(names)
        return False

    def _differs(self, expression: Tokens) -> bool:
        names = [t for n, t in enumerate(expression) if n == 0 or expression[n - 1] != "."]
        return not self._varies.isdisjoint(names)


def _assigned(head: Tokens) -> list[str]:
    """The name that a statement declares or assigns."""
    for token in head:
        if token not in ("let", "var", "const") and _NAME.fullmatch(token):
            return [token] if not _ASSIGN.isdisjoint(head) or head[0] in ("let", "var") else []
    return []


# -- integers -------------------------------------------------------------------------------------
def _indices(name: str, body: list[Node]) -> Iterator[str]:
    """No floating point in what is an index: integer lets, subscripts, loop heads."""
    for node in _walk(body):
        places = list(_subscripts(node.head))
        if node.kind == "for" or node.head[2:4] == [":", "i32"]:
            places.append(node.head)
        for place in places:
            wrong = [t for t in place if t in ("f32", "f16") or _FLOAT.fullmatch(t)]
            if wrong:
                yield f"{name}: {' '.join(wrong)} in the index {' '.join(place)}"


def _divisions(name: str, body: list[Node]) -> Iterator[str]:
    for node in _walk(body):
        if node.kind != "for" or any(inner.kind == "for" for inner in _walk(node.parts[0])):
            continue
        own = set(_assigned(node.head[: node.head.index(";")]))
        for inner in _walk(node.parts[0]):
            places = list(_subscripts(inner.head))
            if inner.head[2:4] == [":", "i32"]:
                places.append(inner.head[4:])
            for place in places:
                divides = {"/", "%", "floor_div", "floor_mod"} & set(place)
                if divides and own.isdisjoint(place):
                    yield f"{name}: {' '.join(sorted(divides))} in an inner loop: {' '.join(place)}"
            if inner.head[2:4] == [":", "i32"] and not own.isdisjoint(inner.head[4:]):
                own.add(inner.head[1])


def _subscripts(head: Tokens) -> Iterator[Tokens]:
    depth, start = 0, 0
    for n, token in enumerate(head):
        if token == "[":
            depth += 1
            start = n + 1 if depth == 1 else start
        elif token == "]":
            depth -= 1
            if depth == 0:
                yield head[start:n]


def _walk(body: list[Node]) -> Iterator[Node]:
    for node in body:
        yield node
        for part in node.parts:
            yield from _walk(part)
