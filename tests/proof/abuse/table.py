"""The table of what healthy clients met beside each attack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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


def write_table(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write the worst p99 of the rounds, beside each attack, as a table of Markdown."""
    lines = [
        f"| beside | {' | '.join(_KINDS.values())} | failed | waited for a core, s | peak MB |",
        f"|---|{'---|' * (len(_KINDS) + 3)}",
    ]
    for name in dict.fromkeys(row["attack"] for row in rows):
        of_it = [row for row in rows if row["attack"] == name]
        worst = [_worst(of_it, kind) for kind in _KINDS]
        failed = sum(each["failed"] for row in of_it for each in row["healthy"].values())
        peaks = [max(row["peak_mb"][module] for row in of_it) for module in of_it[0]["peak_mb"]]
        waited = [
            max(row.get("waited_for_a_core_ms", {}).get(module, 0) for row in of_it) / 1_000
            for module in of_it[0]["peak_mb"]
        ]
        cells = [*worst, str(failed), ", ".join(f"{each:.1f}" for each in waited)]
        cells.append(", ".join(map(str, peaks)))
        lines.append(f"| {name} | {' | '.join(cells)} |")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _worst(rows: Sequence[dict[str, Any]], kind: str) -> str:
    found = [row["healthy"][kind]["p99_ms"] for row in rows if kind in row["healthy"]]
    return f"{max(found):.0f}" if found else "-"
