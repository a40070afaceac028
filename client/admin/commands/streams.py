"""The arguments and streams that a shell hands to ``floodgate-admin``."""

from __future__ import annotations

import io
import os
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TextIO


def ready_streams() -> None:
    """Have both streams take any text; one that is closed takes it nowhere."""
    # First of all, so that no socket is given the number of a closed stream.
    sys.stdout, sys.stderr = _open(sys.stdout), _open(sys.stderr)
    # A name may hold what the terminal's encoding has no character for.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _open(stream: TextIO | None) -> TextIO:
    return stream or open(os.devnull, "w", encoding="utf-8")


def unreadable(arguments: Sequence[str]) -> str | None:
    """Return the complaint about arguments that are not UTF-8; None when all are.

    Python keeps the bytes that it cannot decode, and whatever encodes the text later fails.
    """
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError:
            shown = repr(os.fsencode(argument))[1:]
            return f"the argument {shown} is not UTF-8: write names and values in UTF-8"
    return None


@contextmanager
def nobody_need_read() -> Iterator[None]:
    """Write the output of a block; end quietly where the reader has gone.

    Raises:
        OSError: Standard output takes nothing for another reason, such as a full disk.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        forget_output()


def forget_output() -> None:
    """Keep the interpreter from writing what is left once more when it ends."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
