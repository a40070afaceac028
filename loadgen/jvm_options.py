"""Memory limits in a server's JVM options, compared with the server's topic-list limits."""

from __future__ import annotations

import re
from dataclasses import dataclass

from loadgen.errors import UsageError
from loadgen.units import MB_BYTES, format_bytes

JVM_OPTIONS = {"heap": "-Xmx", "direct": "-XX:MaxDirectMemorySize"}
"""The kinds of memory of a JVM, and the option that limits each."""
_FACTORS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_SIZE = re.compile(r"(\d{1,18})([kmgt]?)", re.IGNORECASE)
_FEW = 0.5


@dataclass(frozen=True)
class JvmOptions:
    """The memory limits in a server's JVM options, in bytes; None for a limit that is not set."""

    heap: int | None = None
    direct: int | None = None


def parse_jvm_options(option: str, text: str) -> JvmOptions:
    """Parse the memory limits in JVM options such as ``-Xmx2g -XX:MaxDirectMemorySize=4g``.

    They are written as in ``PULSAR_MEM``.

    The last of repeated options counts, and direct memory defaults to the heap's limit, as in the
    JVM. Other options are ignored.

    Raises:
        UsageError: A size cannot be read, or the text sets no memory limit.
    """
    found: dict[str, int] = {}
    for word in text.strip("\"'").split():
        for memory, name in JVM_OPTIONS.items():
            if word.startswith(name):
                written = word.removeprefix(name).removeprefix("=")
                size = _SIZE.fullmatch(written)
                if size is None or not int(size[1]):
                    raise UsageError(
                        f"{option}: {name} {written[:40]!r} is not a size such as 512m or 2g"
                    )
                found[memory] = int(size[1]) * _FACTORS[size[2].lower()]
    if not found:
        names = " or ".join(JVM_OPTIONS.values())
        raise UsageError(f"{option} {text[:80]!r} has no {names}: write it as PULSAR_MEM is")
    return JvmOptions(found.get("heap"), found.get("direct", found.get("heap")))


def left_of(server: str, options: JvmOptions, heap_mb: int, direct_mb: int) -> list[str]:
    """Return sentences on how much JVM memory the topic-list limits leave for everything else."""
    told = []
    for memory, limit_mb in (("heap", heap_mb), ("direct", direct_mb)):
        most, name = getattr(options, memory), JVM_OPTIONS[memory]
        if most is None:
            continue
        limit, allows = limit_mb * MB_BYTES, f"{name} ({format_bytes(most)})"
        if limit_mb <= 0:
            told.append(f"The {server} has no {memory} limit: lists may take all of {allows}.")
        elif limit >= most:
            told.append(
                f"The {server}'s {memory} limit, {format_bytes(limit)}, is not below {allows}: "
                "memory ends before the limiter refuses anybody."
            )
        else:
            less = " That is less than half." if most - limit < _FEW * most else ""
            told.append(
                f"The {server}'s {memory} limit leaves {format_bytes(most - limit)} of {allows} "
                f"to everything else.{less}"
            )
    return told
