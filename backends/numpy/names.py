"""From the names of the IR to Python identifiers: checked, mangled, never two the same."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable

# Names that the generated text itself uses; `_names` are its helpers.
RESERVED = frozenset({
    "np", "out", "range", "min", "max", "slice", "sum", "tuple", "list", "zip", "str",
    "ValueError", "name", "array", "shape", "dtype", "run", "bind", "dict", "isinstance", "int",
    "len", "id", "set", "TypeError", "os", "sys", "threading", "types", "ctypes", "glob",
    "SimpleQueue",
})  # fmt: skip


class Names:
    """One identifier for each (kind, name), so a size and a buffer of one name stay apart."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken = set(RESERVED) | set(reserved)
        self._found: dict[tuple[str, str], str] = {}

    def get(self, kind: str, name: str, wanted: str | None = None) -> str:
        """The identifier for `name`: itself (or `wanted`) where that is possible."""
        found = self._found.get((kind, name))
        if found is None:
            found = self._found[kind, name] = self._unique(identifier(wanted or name))
            self._taken.add(found)
        return found

    def _unique(self, wanted: str) -> str:
        if wanted not in self._taken:
            return wanted
        number = 2
        while f"{wanted}_{number}" in self._taken:
            number += 1
        return f"{wanted}_{number}"


def identifier(name: str) -> str:
    """A Python identifier in ASCII that is no keyword and has no leading underscore."""
    text = re.sub(r"[^A-Za-z0-9_]", "_", name).strip("_") or "v"
    if text[0].isdigit():
        text = f"v{text}"
    if keyword.iskeyword(text) or keyword.issoftkeyword(text):
        text = f"{text}_"
    return text
