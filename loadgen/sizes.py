"""Sizes and speeds as people type them: 100kB, 64KiB, 1MB/s, or plain numbers."""

from __future__ import annotations

import re

from loadgen.errors import UsageError

_SIZE = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([kmg]i?)?b?\s*$", re.IGNORECASE)
_FACTORS = {None: 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def parse_rate(option: str, text: str) -> float:
    """Return bytes a second of ``100kB/s``, ``1MiB/s`` or a plain number.

    Raises:
        UsageError: The text is none of these.
    """
    return parse_size(option, text, " a second", "/s")


def parse_read_rate(text: str) -> float:
    """Return bytes a second of what was given as ``--read-rate``.

    Raises:
        UsageError: The text is not a speed.
    """
    return parse_rate("--read-rate", text)


def parse_size(option: str, text: str, each: str = "", suffix: str = "") -> float:
    """Return bytes of ``100kB`` (1,000 each), ``64KiB`` (1,024 each) or a plain number.

    Raises:
        UsageError: The text is none of these.
    """
    found = _SIZE.match(text.strip().removesuffix(suffix))
    if found is None:
        raise UsageError(
            f"{option} {text!r} is not a number of bytes{each} such as 100kB{suffix} or "
            f"1MiB{suffix}"
        )
    number, unit = found.groups()
    return float(number) * _FACTORS[unit.lower() if unit else None]


def rate_text(bytes_per_second: float) -> str:
    """Write a speed as it may be typed: ``100kB/s``, or 0."""
    return f"{bytes_per_second / 1000:g}kB/s" if bytes_per_second else "0"


def size_text(size_bytes: float) -> str:
    """Write a size as it may be typed: ``64KiB``, or 0."""
    return f"{size_bytes / 1024:g}KiB" if size_bytes else "0"
