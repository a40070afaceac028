"""The directory of a run's results, made before the run so that none passes in vain."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from loadgen.errors import UsageError
from loadgen.scenarios.registry import SCENARIOS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REPORT_NAME = "report.html"
# Files that not every run writes: an older one would pass for a part of the new run.
_EXTRAS = (REPORT_NAME, *(name for kind in SCENARIOS.values() for name in kind.files))
_OF_A_RUN = ("run.json", "summary.json", "requests.parquet", "server-metrics.parquet", *_EXTRAS)


@contextmanager
def replaceable_run_directory(directory: Path) -> Iterator[None]:
    """Make a directory for a run; take it away again if the block leaves it empty.

    Raises:
        UsageError: It cannot be made, or holds a file that no run has written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        others = [path.name for path in directory.iterdir() if not _is_of_a_run(path.name)]
    except OSError as error:
        raise UsageError(
            f"{directory} cannot be the run's directory ({error.strerror}): choose another --out"
        ) from None
    if others:
        raise UsageError(
            f"{directory} holds {min(others)}, which no run has written: choose another --name or "
            "--out"
        )
    try:
        yield
    except BaseException:
        with suppress(OSError):
            directory.rmdir()
        raise


def forget_extras(directory: Path) -> None:
    """Remove files of an older run or its report that the new run may not write.

    Raises:
        OSError: The directory cannot be written.
    """
    for name in _EXTRAS:
        (directory / name).unlink(missing_ok=True)


def _is_of_a_run(name: str) -> bool:
    # The demo keeps the servers' logs beside the run.
    return name in _OF_A_RUN or name.endswith(".log")
