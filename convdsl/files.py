"""Files that are written in one piece or not at all."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO

from convdsl.diagnostics import CdslError

Content = bytes | Callable[[IO[bytes]], object]

# Temporary files that exist at this moment; whoever ends the process abruptly removes them.
_PENDING: set[Path] = set()


def write_files(files: Mapping[Path, Content]) -> None:
    """Write files, each through a temporary file beside it; none is touched before all are written.

    An existing file keeps its permissions; what is no regular file (like /dev/null) is written to
    directly.

    Raises:
        CdslError: E0360 when the system refuses.
    """
    ready: list[tuple[Path, Path]] = []
    try:
        for path, content in files.items():
            try:
                target = path.resolve()
                if target.exists() and not target.is_file():
                    with target.open("wb") as file:
                        _fill(file, content)
                    continue
                ready.append((_temporary(target, content), target))
            except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: links in a circle
                raise cannot_write(path, error) from None
        for temporary, target in ready:
            try:
                temporary.replace(target)
            except OSError as error:
                raise cannot_write(target, error) from None
            _PENDING.discard(temporary)
    except BaseException:
        for temporary, _ in ready:
            _drop(temporary)
        raise


def create_file(path: Path, content: bytes) -> None:
    """Write a file that must not exist yet.

    Raises:
        CdslError: E0360 when the system refuses, E0366 when there is something of that name.
    """
    try:
        with path.open("xb") as file:
            _PENDING.add(path)
            file.write(content)
    except FileExistsError:
        raise CdslError(
            "E0366",
            f"`{path}` exists already and is left as it is",
            help="choose another name, or move the file away",
        ) from None
    except (OSError, ValueError) as error:
        if path in _PENDING:
            _drop(path)
        raise cannot_write(path, error) from None
    except BaseException:
        _drop(path)
        raise
    _PENDING.discard(path)


def make_folder(path: Path) -> list[Path]:
    """Make a folder with its parents; returns those that did not exist, the innermost first.

    Raises:
        CdslError: E0360 when the system refuses.
    """
    missing: list[Path] = []
    try:
        for folder in (path, *path.parents):
            if folder.exists():
                break
            missing.append(folder)
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        remove_folders(missing)
        raise cannot_write(path, error) from None
    return missing


def remove_folders(folders: list[Path]) -> None:
    """Remove folders that `make_folder` made, as far as they are empty."""
    for folder in folders:
        try:
            folder.rmdir()
        except (OSError, ValueError):
            return


def drop_pending() -> None:
    """Remove the temporary files of writes that will not come to their end."""
    for path in list(_PENDING):
        _drop(path)


def cannot_write(path: Path | str, error: Exception) -> CdslError:
    """The error for a file or folder that the system does not let us write."""
    reason = getattr(error, "strerror", None) or str(error)
    return CdslError("E0360", f"cannot write `{path}`: {reason}")


def _temporary(target: Path, content: Content) -> Path:
    """The content in a new file next to its target."""
    mode = None
    if target.exists():
        if not os.access(target, os.W_OK):
            raise PermissionError(13, "the file is read-only")
        mode = stat.S_IMODE(target.stat().st_mode)
    temporary = target.with_name(f".convdsl-{secrets.token_hex(8)}.tmp")
    _PENDING.add(temporary)
    try:
        with temporary.open("xb") as file:
            _fill(file, content)
        if mode is not None:
            temporary.chmod(mode)
    except BaseException:
        _drop(temporary)
        raise
    return temporary


def _fill(file: IO[bytes], content: Content) -> None:
    if isinstance(content, bytes):
        file.write(content)
    else:
        content(file)


def _drop(path: Path) -> None:
    with contextlib.suppress(OSError, ValueError):
        path.unlink(missing_ok=True)
    _PENDING.discard(path)
