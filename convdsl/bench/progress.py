"""What goes on, on stderr: one line that changes on a terminal, else a line for each layer."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status


class StderrProgress:
    """A context; see `convdsl.bench.session.Progress`."""

    def __init__(self, console: Console) -> None:
        self._layer = ""
        self._status: Status | None = console.status("starting") if console.is_terminal else None

    def __enter__(self) -> StderrProgress:
        if self._status is not None:
            self._status.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Nothing more is said."""
        if self._status is not None:
            self._status.stop()

    def layer(self, name: str, number: int, count: int) -> None:
        self._layer = f"{name} ({number} of {count}): "
        if self._status is None:
            print(f"{name} ({number} of {count}) ...", file=sys.stderr, flush=True)

    def step(self, text: str) -> None:
        if self._status is not None:
            from rich.text import Text

            self._status.update(Text(self._layer + text))
