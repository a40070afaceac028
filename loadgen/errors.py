"""The exceptions of loadgen, each with a sentence for the user and an exit code.

The codes follow k6 where k6 has a code (99), so that a pipeline can tell a broken limit from a
broken measurement.
"""

from __future__ import annotations

from contextlib import contextmanager
from difflib import get_close_matches
from enum import IntEnum
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_LONGEST_VALUE = 60
_SHORTEST_COMMON = 4


class ExitCode(IntEnum):
    """The exit codes of ``loadgen``."""

    PASSED = 0
    INTERNAL = 1
    USAGE = 2
    CORRECTNESS = 97
    """An answer was wrong, or a server did not release all accounted bytes."""
    GENERATOR_LIMITED = 98
    """An unreliable run: the generator was the limit or lost a task, or a policy failed."""
    THRESHOLDS = 99
    INTERRUPTED = 130


class LoadgenError(Exception):
    """An expected failure of loadgen; ``str()`` is the whole message for the user.

    Args:
        sentence: The message: what is wrong, the wrong value, and the remedy.
        exit_code: The process's exit code.
    """

    def __init__(self, sentence: str, exit_code: ExitCode = ExitCode.INTERNAL) -> None:
        # Both go to the base class: exceptions cross process borders by ``args``.
        super().__init__(sentence, exit_code)
        self.sentence = sentence
        self.exit_code = exit_code

    def __str__(self) -> str:
        return self.sentence


class UsageError(LoadgenError):
    """An option, an argument or a file of the user is wrong."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence, ExitCode.USAGE)
        self.args = (sentence,)


def reason_of(error: Exception) -> str:
    """Return an exception's message on one line or, if it has no message, its class name."""
    text = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
    return str(text).splitlines()[0].rstrip(".")


@contextmanager
def writing(out: Path) -> Iterator[None]:
    """Create the directory of ``--out``, and convert the ``with`` block's write errors.

    The converted errors have a sentence for the user.

    Raises:
        LoadgenError: The directory or a file cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        yield
    except OSError as error:
        raise LoadgenError(
            f"--out {out} cannot be written ({error.strerror}); choose another directory"
        ) from error


def read_text(what: str, file: Path, most_bytes: int = 256 << 20, undecoded: str = "strict") -> str:
    """Read the text of a file that the user named.

    Args:
        what: What the file is for, as the error sentence names it.
        file: The path of the file.
        most_bytes: The largest allowed size of the file.
        undecoded: Treatment of bytes that are not UTF-8, as in :meth:`bytes.decode`.

    Raises:
        UsageError: The file cannot be read, or is too large.
    """
    try:
        with file.open(encoding="utf-8", errors=undecoded) as opened:
            text = opened.read(most_bytes + 1)
    except (OSError, ValueError) as error:
        reason = reason_of(error) if isinstance(error, OSError) else "it is not UTF-8"
        reason = "no file has such a name" if "\0" in str(file) else reason
        raise UsageError(f"{what} {file} cannot be read: {reason}") from None
    if len(text) > most_bytes:
        raise UsageError(f"{what} {file} has more than {most_bytes >> 20} MiB")
    return text


def write_text(file: Path, text: str) -> None:
    """Write a text file such as a page or picture; create its folder if necessary.

    Raises:
        UsageError: The file cannot be written.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = f"{error.strerror}; choose another place"
        raise UsageError(f"{file} cannot be written: {reason}") from error


def shown(value: Any) -> str:  # noqa: ANN401
    """Format a user's value for an error sentence, shortened if it is long.

    Booleans and null are written as in YAML.
    """
    words = {None: "null", True: "true", False: "false"}
    text = words[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."


def meant(name: str, known: Sequence[str]) -> str:
    """Return the end of an error sentence that suggests the valid names closest to a wrong one."""
    near = get_close_matches(name, known, 1, 0.6) or [
        each for each in known if len(name) >= _SHORTEST_COMMON and each.startswith(name)
    ]
    if near:
        return f"; did you mean {near[0]}?"
    return f"; there are {', '.join(known)}" if known else ""


# -- packages that only Spark needs ----

REMEDY = 'pip install "pulsar-floodgate-loadgen[spark]"'
SPARK_PACKAGES = ("pyspark", "py4j")
WITHOUT_SPARK = f"Spark needs the package pyspark: {REMEDY}, or use --place processes"


def require_spark() -> None:
    """Check that Spark is installed, before a run in Spark begins.

    Raises:
        LoadgenError: Spark is not installed.
    """
    if find_spec(SPARK_PACKAGES[0]) is None:
        raise LoadgenError(WITHOUT_SPARK)
