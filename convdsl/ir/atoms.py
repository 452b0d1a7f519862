"""The atoms of integer expressions, and the order in which products of them are sorted."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from convdsl.ir.index_text import fn_text

if TYPE_CHECKING:
    from convdsl.ir.index import Index

FnOp = Literal["//", "%", "min", "max"]


class Sym(str):
    """A named integer. A string, so that the many comparisons of compiling stay cheap."""

    __slots__ = ()

    @property
    def name(self) -> str:
        return str(self)

    @property
    def key(self) -> str:
        return self


class Fn:
    """A non-polynomial operation; its value is opaque to the polynomial algebra."""

    __slots__ = ("_hash", "_key", "args", "op")

    def __init__(self, op: FnOp, args: tuple[Index, ...]) -> None:
        self.op: FnOp = op
        self.args = args
        self._hash = hash((op, args))
        self._key: str | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Fn)
            and self._hash == other._hash
            and self.op == other.op
            and self.args == other.args
        )

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return f"Fn({self.key})"

    @property
    def key(self) -> str:
        if self._key is None:
            self._key = fn_text(self)
        return self._key


Atom = Sym | Fn
Monomial = tuple[Atom, ...]


def term_key(term: tuple[Monomial, int]) -> tuple[int, str]:
    return monomial_key(term[0])


@lru_cache(maxsize=1 << 16)
def monomial_key(m: Monomial) -> tuple[int, str]:
    """Products before single names, the constant last; names in alphabetical order."""
    return (-len(m), "*".join(a.key for a in m)) if m else (1, "")
