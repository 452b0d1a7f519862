"""Enough of a WGSL parser to look at control flow: functions, blocks, statements, token lists."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_TOKEN = re.compile(
    r"\s*(?:([A-Za-z_]\w*|(?:\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)[iufh]?)"
    r"|(->|\+\+|--|&&|\|\||[-+*/%<>=!&|]=|.))",
    re.DOTALL,
)
_HEX = re.compile(r"0[xX][0-9a-fA-F]+u?")

Tokens = list[str]


@dataclass(slots=True)
class Node:
    """A statement: `kind` is if, for, while, loop, block, simple; `parts` are its blocks.

    `head` holds its tokens: of a `for`, init ; condition ; update.
    """

    kind: str
    head: Tokens
    parts: list[list[Node]] = field(default_factory=list)


@dataclass(slots=True)
class Function:
    name: str
    attributes: Tokens
    parameters: Tokens
    body: list[Node]


def tokens(text: str) -> Tokens:
    """All tokens, comments left out."""
    bare = _COMMENT.sub(" ", text)
    out: Tokens = []
    at = 0
    while at < len(bare):
        found = _HEX.match(bare, at) or _TOKEN.match(bare, at)
        if found is None:
            break
        token = found.group().strip()
        if token:
            out.append(token)
        at = found.end()
    return out


def functions(text: str) -> list[Function]:
    """The functions of a module, in order."""
    return _Parser(tokens(text)).module()


class _Parser:
    def __init__(self, source: Tokens) -> None:
        self._source, self._at = source, 0

    def module(self) -> list[Function]:
        out: list[Function] = []
        start = 0
        while self._at < len(self._source):
            token = self._source[self._at]
            if token == "fn":
                attributes = self._source[start : self._at]
                name = self._source[self._at + 1]
                self._at += 2
                parameters = self._group("(", ")")
                while self._source[self._at] != "{":
                    self._at += 1
                out.append(Function(name, attributes, parameters, self._block()))
                start = self._at
            elif token in (";", "}"):
                self._at += 1
                start = self._at
            elif token == "{":
                self._group("{", "}")
                start = self._at
            else:
                self._at += 1
        return out

    def _group(self, opening: str, closing: str) -> Tokens:
        """The tokens inside a bracket that starts here."""
        assert self._source[self._at] == opening, self._source[self._at : self._at + 5]
        depth, start = 0, self._at + 1
        while True:
            token = self._source[self._at]
            depth += (token == opening) - (token == closing)
            self._at += 1
            if depth == 0:
                return self._source[start : self._at - 1]

    def _block(self) -> list[Node]:
        assert self._source[self._at] == "{", self._source[self._at : self._at + 5]
        self._at += 1
        out: list[Node] = []
        while self._source[self._at] != "}":
            out.append(self._statement())
        self._at += 1
        return out

    def _statement(self) -> Node:
        word = self._source[self._at]
        if word == "{":
            return Node("block", [], [self._block()])
        if word in ("for", "while", "switch"):
            self._at += 1
            head = self._group("(", ")") if self._source[self._at] == "(" else []
            return Node(word, head, [self._block()])
        if word in ("loop", "continuing"):
            self._at += 1
            return Node(word, [], [self._block()])
        if word == "if":
            self._at += 1
            start = self._at
            while self._source[self._at] != "{":
                self._at += 1
            node = Node("if", self._source[start : self._at], [self._block()])
            if self._source[self._at] == "else":
                self._at += 1
                nested = self._source[self._at] == "if"
                node.parts.append([self._statement()] if nested else self._block())
            return node
        start = self._at
        while self._source[self._at] != ";":
            self._at += 1
        self._at += 1
        return Node("simple", self._source[start : self._at - 1])
