"""Figures of healthy clients beside each attack, and their table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_KINDS = {
    "list, broker": "list",
    "list, proxy": "list, proxy",
    "connect and list, broker": "anew",
    "connect and list, proxy": "anew, proxy",
    "HTTP, broker": "HTTP",
    "HTTP, proxy": "HTTP, proxy",
    "send": "send",
    "send to receive": "to receive",
}


@dataclass(frozen=True)
class Beside:
    """Observations of healthy clients beside an attack, over all rounds.

    Attributes:
        served: Number of operations.
        p99_ms: By kind, nearest rank.
        worst_ms: The longest of any kind.
        failures: Operations not served.
        waited_s: The longest time in a round that each server was ready to run without a core.
        peak_mb: Peak resident memory of each server.
    """

    attack: str
    title: str
    served: int
    p99_ms: dict[str, float]
    worst_ms: float
    failures: list[str]
    waited_s: dict[str, float]
    peak_mb: dict[str, int]

    @classmethod
    def of(cls, rows: Sequence[dict[str, Any]], attack: str) -> Beside:
        """Combine the rounds of an attack."""
        own = [row for row in rows if row["attack"] == attack]
        met: dict[str, list[float]] = {}
        failures: list[str] = []
        for kind, found in (each for row in own for each in row["healthy"].items()):
            met.setdefault(kind, []).extend(found["ms"])
            failures += [f"{kind}: {text}" for text in found["failures"]]
        return cls(
            attack=attack,
            title=own[0]["title"],
            served=sum(map(len, met.values())),
            p99_ms={kind: _p99(ms) for kind, ms in met.items() if ms},
            worst_ms=max((max(ms) for ms in met.values() if ms), default=math.inf),
            failures=failures,
            waited_s={
                role: round(max(row["waited_ms"][role] for row in own) / 1_000, 1)
                for role in own[0]["waited_ms"]
            },
            peak_mb={role: max(row["peak_mb"][role] for row in own) for role in own[0]["peak_mb"]},
        )

    @property
    def worst_p99_ms(self) -> float:
        return max(self.p99_ms.values(), default=math.inf)

    def sentence(self) -> str:
        kind = max(self.p99_ms, key=lambda each: self.p99_ms[each], default="none")
        return (
            f"{self.title}: {self.served:,} healthy operations, {len(self.failures)} failed; the "
            f"worst p99 of any kind is {self.worst_p99_ms:.0f} ms ({kind}), the longest took "
            f"{self.worst_ms:.0f} ms" + "".join(f"; {text}" for text in self.failures[:1])
        )


def _p99(ms: Sequence[float]) -> float:
    return sorted(ms)[math.ceil(0.99 * len(ms)) - 1]


def write_table(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write p99 in milliseconds beside each attack as a Markdown table."""
    lines = [
        f"| beside | {' | '.join(_KINDS.values())} | longest | failed | waited s | peak MB |",
        f"|---|{'---|' * (len(_KINDS) + 4)}",
    ]
    for name in dict.fromkeys(row["attack"] for row in rows):
        found = Beside.of(rows, name)
        cells = [f"{found.p99_ms[kind]:.0f}" if kind in found.p99_ms else "-" for kind in _KINDS]
        cells += [f"{found.worst_ms:.0f}", str(len(found.failures))]
        cells += [", ".join(map(str, each.values())) for each in (found.waited_s, found.peak_mb)]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
