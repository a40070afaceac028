"""The arguments and standard streams of ``floodgate-admin``."""

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
    """Make both streams accept any text; a closed stream discards all text."""
    # First of all: a socket must not get a closed stream's number.
    sys.stdout, sys.stderr = _open(sys.stdout), _open(sys.stderr)
    # A name may contain characters missing in the terminal's encoding.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _open(stream: TextIO | None) -> TextIO:
    return stream or open(os.devnull, "w", encoding="utf-8")


def unreadable(arguments: Sequence[str]) -> str | None:
    """Return a complaint about arguments outside UTF-8, or None.

    Python keeps undecodable bytes, and a later encoding would fail.
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
    """Write the output of a block; end quietly after the reader has closed the pipe.

    Raises:
        OSError: Standard output failed for another reason, such as a full disk.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        forget_output()


def forget_output() -> None:
    """Discard buffered output, which the interpreter would write again at exit."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
