"""What is said of alerts and of what scrapes see, for a page and a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.alerts.rules import QUIET_SECONDS, SCRAPE_SECONDS
from loadgen.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from loadgen.alerts.rules import Alerts

SEEN_HEADS = ("server", "at most", f"seen every {SCRAPE_SECONDS:g} s", "limit", "timeouts")
ALERT_HEADS = ("alert", "severity", "server", "true from", "fires", "until")


def seen_rows(seen: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each figure of each server, in words; without those that stayed 0."""
    for row in seen:
        if not row["most"]:
            continue
        write = format_bytes if row["figure"].endswith("used") else _requests
        limit = "" if row["limit"] is None else format_bytes(row["limit"])
        timeouts = "" if limit or row["timeouts"] is None else _requests(row["timeouts"])
        saw = "-" if row["seen"] is None else write(row["seen"])
        yield f"{row['process']} {row['figure']}", write(row["most"]), saw, limit, timeouts


def _requests(count: float) -> str:
    return plural(round(count), "request")


def alert_rows(alerts: Alerts) -> Iterator[tuple[str, ...]]:
    """Yield a row for each time for which a rule was true, in words."""
    for each in alerts.found:
        fires = "too short" if each.fires is None else format_seconds(each.fires)
        until = f"{format_seconds(QUIET_SECONDS)} and on"
        if each.until is not None:
            until = format_seconds(each.until)
        since = format_seconds(each.since)
        yield each.alert, each.severity, each.server, since, fires, until


def alert_sentences(alerts: Alerts) -> list[str]:
    """Say how many alerts fire, and which rules were not evaluated."""
    fired = sorted({each.alert for each in alerts.fired})
    told = ", ".join(fired) if fired else "none"
    found = [f"Of {plural(alerts.rules, 'alert')} these fire: {told}."]
    if alerts.not_evaluated:
        why = "; ".join(f"{name} ({why})" for name, why in alerts.not_evaluated.items())
        found.append(f"Not evaluated: {why}.")
    return found
