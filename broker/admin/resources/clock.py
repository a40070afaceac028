"""``/admin/v2/floodgate/clock``: moves the broker's time ahead (POST), and shows the time (GET).

Tests of expiry, delays, retention and tokens then need no real hour.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from aiohttp import web

from server.faults.moved_clock import TIME_PATTERN
from server.faults.routes import ENABLED_KEY
from server.http import RestError, json_response

if TYPE_CHECKING:
    from server.faults.moved_clock import MovedClock

CLOCK_PATH = "/admin/v2/floodgate/clock"
MOST_SECONDS = 7 * 86_400
"""Longest move of one request: periodic work is done for each of its intervals."""
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def clock_routes(clock: MovedClock | None) -> list[web.RouteDef]:
    """Return the routes; None: faults and the clock are disabled, and every request is refused."""

    async def show(_: web.Request) -> web.Response:
        return json_response(_told(_enabled(clock)))

    async def advance(request: web.Request) -> web.Response:
        moved = _enabled(clock)
        await moved.advance(_asked(await request.read()))
        return json_response(_told(moved))

    return [web.get(CLOCK_PATH, show), web.post(CLOCK_PATH, advance)]


def _enabled(clock: MovedClock | None) -> MovedClock:
    if clock is None:
        raise RestError(404, f"the clock stands here: start this broker with {ENABLED_KEY}=true")
    return clock


def _told(clock: MovedClock) -> dict[str, Any]:
    time = datetime.fromtimestamp(clock.wall_ms() / 1000, UTC)
    return {"time": time.isoformat(timespec="milliseconds"), "aheadSeconds": clock.ahead_seconds}


def _asked(body: bytes) -> float:
    """Return the seconds of a request's body."""
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    text = found.get("advance") if isinstance(found, dict) and len(found) == 1 else None
    time = re.match(TIME_PATTERN, text) if isinstance(text, str) else None
    if time is None:
        said = body[:50].decode(errors="replace")
        raise RestError(
            412, f'{said!r} moves no clock: write it as {{"advance": "1h"}}, or 90s, 5m'
        )
    seconds = float(time[1]) * _SECONDS[time[2]]
    if seconds > MOST_SECONDS:
        days = MOST_SECONDS // 86_400
        raise RestError(412, f"advance={time[0]}: at most {days}d at once; ask several times")
    return seconds
