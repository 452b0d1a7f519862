"""One value of the generated text: a WGSL expression with what is known about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Value:
    """A WGSL expression. `tight`: 2 a primary, 1 a product, 0 a sum. `constant`: a literal."""

    text: str
    dtype: str
    width: int = 1
    tight: int = 2
    constant: bool = False

    @property
    def type(self) -> str:
        return self.dtype if self.width == 1 else f"vec4<{self.dtype}>"

    def splat(self) -> str:
        """As a vec4."""
        return self.text if self.width == 4 else f"vec4<{self.dtype}>({self.text})"

    def within(self, tight: int) -> str:
        """In parentheses where the surroundings bind as tightly as that."""
        return self.text if self.tight >= tight else f"({self.text})"


def wide(value: Value, width: int) -> str:
    """The text at this width."""
    return value.splat() if width == 4 else value.text


def gather(lanes: list[Value]) -> Value:
    """A vec4 of four numbers."""
    dtype = lanes[0].dtype
    return Value(f"vec4<{dtype}>({', '.join(v.text for v in lanes)})", dtype, 4)
