"""Formatting of bytes, seconds and counts with their units, and parsing of sizes.

One MB is 1,048,576 bytes and one kB 1,024 bytes, as in Pulsar's own keys
(``maxTopicListInFlightHeapMemSizeMB``).
"""

from __future__ import annotations

import re

from loadgen.errors import UsageError

KB_BYTES = 1024
MB_BYTES = 1024 * 1024


def format_bytes(size_bytes: float) -> str:
    """Format a size in MB, or in kB below a tenth of a MB, or in bytes below 1,000.

    From 1 MB on all sizes are in MB, so that the figures in a table are easy to compare.

    Units: bytes.
    """
    if size_bytes < 0:
        return f"-{format_bytes(-size_bytes)}"
    if size_bytes >= 9.95 * MB_BYTES:
        return f"{size_bytes / MB_BYTES:,.0f} MB"
    if size_bytes >= 0.1 * MB_BYTES:
        return f"{size_bytes / MB_BYTES:.1f} MB"
    if size_bytes == 0:
        return "0 MB"
    if round(size_bytes) < 1000:
        return plural(round(size_bytes), "byte")
    return f"{round(size_bytes / KB_BYTES)} kB"


def format_seconds(seconds: float) -> str:
    """Format a duration with few digits: in seconds or, below one second, in milliseconds.

    Units: seconds.
    """
    if seconds < 0:
        return f"-{format_seconds(-seconds)}"
    if seconds >= 9.95:
        return f"{seconds:,.1f} s"
    if seconds >= 0.9995:
        return f"{seconds:.2f} s"
    return f"{seconds * 1000:.0f} ms"


def format_count(count: float) -> str:
    """Format a whole number with separators between thousands."""
    return f"{count:,.0f}"


def plural(count: int, singular: str, several: str | None = None) -> str:
    """Format a count with its noun, such as ``1 client`` or ``1,000 clients``."""
    noun = singular if count == 1 else several or f"{singular}s"
    return f"{count:,} {noun}"


_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([kmg]i?)?b?\s*$", re.IGNORECASE)
_LONGEST_SIZE = 40
_FACTORS = {None: 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def parse_size(option: str, text: str, suffix: str = "") -> float:
    """Parse a size in bytes: ``100kB`` (kB of 1,000), ``64KiB`` (KiB of 1,024), or a number.

    Raises:
        UsageError: The text does not have this form.
    """
    found = _SIZE.match(text.strip().removesuffix(suffix))
    if found is None or len(text) > _LONGEST_SIZE:
        given = text[:_LONGEST_SIZE]
        raise UsageError(f"{option} {given!r} is not a number of bytes such as 100kB{suffix}")
    number, unit = found.groups()
    return float(number) * _FACTORS[unit.lower() if unit else None]


def rate_text(bytes_per_second: float) -> str:
    """Format a speed as command-line options have it: ``100kB/s``, or 0."""
    return f"{bytes_per_second / 1000:g}kB/s" if bytes_per_second else "0"
