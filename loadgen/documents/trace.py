"""The moments of a recorded log, as the arrivals of a scenario take them."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from loadgen.errors import UsageError, read_text
from loadgen.plan.fields import MOST_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

_ISO = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?(?:Z|[+-]\d\d:?\d\d)?(?=\s|[]|,;]|$)"
)
_SECONDS = re.compile(r"\d{1,12}(?:\.\d{1,9})?(?=\s|[,;]|$)")


def read_trace(file: Path) -> list[float]:
    """Return the moments of a log, in seconds after the first of them, in ascending order.

    Empty lines, and those that begin with ``#``, are none.

    Raises:
        UsageError: It cannot be read, has no moment, or a line begins with none.
    """
    lines = read_text("the trace", file, undecoded="replace").splitlines()
    moments = sorted(
        (_moment(line.strip(), f"{file}, line {number}"), number)
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.lstrip().startswith("#")
    )
    if not moments:
        raise UsageError(f"the trace {file} has no moment")
    (first, line_of_first), (last, line_of_last) = moments[0], moments[-1]
    if last - first > MOST_SECONDS:
        raise UsageError(
            f"{file}, line {line_of_last}: this moment is {last - first:,.0f} s behind the first, "
            f"of line {line_of_first}: a trace lasts at most {MOST_SECONDS:,} s"
        )
    return [round(moment - first, 6) for moment, _ in moments]


def _moment(line: str, where: str) -> float:
    text = line.lstrip("[")
    if found := _SECONDS.match(text):
        return float(found[0])
    with suppress(ValueError):  # the thirteenth month
        if found := _ISO.match(text):
            time = datetime.fromisoformat(found[0].replace(",", "."))
            return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    raise UsageError(
        f"{where}: {line[:40]!r} begins with no moment: seconds, or a time as 2026-11-23T08:00:00Z"
    )
