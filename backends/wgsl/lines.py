"""Generated text as a tree of lines: a line can still be put before a block that is being built."""

from __future__ import annotations

from collections.abc import Iterator


class Block:
    """Lines and nested blocks, in order. A nested block is indented by one step."""

    __slots__ = ("items",)

    def __init__(self) -> None:
        self.items: list[str | Block] = []

    def line(self, text: str) -> None:
        self.items.append(text)

    def nest(self, head: str, body: Block) -> None:
        """`head {`, the indented body, `}`; nothing for an empty body."""
        if body.items:
            self.items += [f"{head} {{", body, "}"]

    def branch(self, condition: str, body: Block) -> None:
        """An `if` on names that are never assigned: joins its like right before."""
        head = f"if ({condition}) {{"
        if self.items[-3:-2] == [head] and self.items[-1] == "}" and body.items:
            before = self.items[-2]
            if isinstance(before, Block):
                before.items += body.items
                return
        self.nest(head[:-2], body)

    def lines(self, indent: str = "") -> Iterator[str]:
        """The text, line by line."""
        for item in self.items:
            if isinstance(item, str):
                yield f"{indent}{item}" if item else ""
            else:
                yield from item.lines(indent + "  ")
