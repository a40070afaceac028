"""REST routes ``/admin/v2/floodgate/connections``: open connections and their last commands.

``PUT .../{number}/commands`` starts recording its commands, ``GET`` returns the last, ``DELETE``
stops recording. At most LISTED connections are listed, most pending bytes first.

Commands are decoded, in both directions, and shown as in debug log lines: without credentials and
payloads. Bound: COMMANDS of each of RECORDED connections; the oldest is evicted.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from aiohttp import web

from proto.command_log import received_line, sent_lines
from server.http import RestError, json_response

if TYPE_CHECKING:
    from collections.abc import Sequence

    from limiter.clock import Clock
    from proto.frames import Frame

    Buffer = bytes | memoryview
    from collections.abc import Callable, Collection

    from server.connection.served_connection import ServedConnection


COMMANDS = 200
"""Most kept commands of a connection."""
RECORDED = 20
"""Most simultaneously recorded connections."""


class Told(NamedTuple):
    """A recorded command of a connection, for the REST response.

    Attributes:
        at_ms: The time, in milliseconds since 1970.
        direction: ``received`` from the client, or ``sent`` to it.
        command: The description of the command.
    """

    at_ms: int
    direction: str
    command: str


class LastCommands:
    """The last commands that a connection received and sent, recorded for operators."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.total = 0
        self.kept: deque[Told] = deque(maxlen=COMMANDS)

    def received(self, frame: Frame) -> None:
        """Record a command received from the client."""
        self._keep("received", received_line(frame))

    def sent(self, buffers: Sequence[Buffer], size_bytes: int, *, in_a_pipe: bool) -> None:
        """Record the commands in bytes that are sent to the client."""
        for line in sent_lines(buffers, size_bytes, in_a_pipe=in_a_pipe):
            self._keep("sent", line)

    def _keep(self, direction: str, line: str) -> None:
        self.total += 1
        self.kept.append(Told(self._clock.wall_ms(), direction, line))


CONNECTIONS_PATH = "/admin/v2/floodgate/connections"
COMMANDS_PATH = f"{CONNECTIONS_PATH}/{{number}}/commands"
LISTED = 500
_DIGITS = 15


class ConnectionReports:
    """Handles the REST requests about open connections.

    Args:
        connections: Returns the open connections.
        clock: The source of time, for commands.
    """

    def __init__(
        self, connections: Callable[[], Collection[ServedConnection]], clock: Clock
    ) -> None:
        self._connections = connections
        self._clock = clock
        self._records: dict[ServedConnection, LastCommands] = {}

    def routes(self) -> list[web.AbstractRouteDef]:
        """Return the REST routes about connections."""
        return [
            web.get(CONNECTIONS_PATH, self.listed),
            web.get(COMMANDS_PATH, self.commands),
            web.put(COMMANDS_PATH, self.record),
            web.delete(COMMANDS_PATH, self.end),
        ]

    async def listed(self, _: web.Request) -> web.Response:
        """Return the open connections with the most pending bytes, and their states."""
        found = list(self._connections())
        # For 50,000 connections it takes longer than a turn may.
        shown = await asyncio.to_thread(heapq.nlargest, LISTED, found, _waiting)
        return json_response(
            {"total": len(found), "connections": [self._described(one) for one in shown]}
        )

    async def commands(self, request: web.Request) -> web.Response:
        """Return the last commands recorded of a connection, oldest first."""
        record = self._records.get(self._asked(request))
        if record is None:
            raise RestError(404, "the commands are not recorded: PUT this path to begin")
        kept = [told._asdict() for told in record.kept]
        return json_response({"total": record.total, "most": COMMANDS, "commands": kept})

    async def record(self, request: web.Request) -> web.Response:
        """Start recording the commands of a connection."""
        cnx = self._asked(request)
        self._records = {one: kept for one, kept in self._records.items() if not one.closed}
        if cnx not in self._records:
            if len(self._records) >= RECORDED:
                reason = f"commands of {RECORDED} connections are kept: DELETE one of these first"
                raise RestError(412, reason)
            record = self._records[cnx] = LastCommands(self._clock)
            cnx.record_commands(record)
        return web.Response(status=204)

    async def end(self, request: web.Request) -> web.Response:
        """Stop recording the commands of a connection."""
        cnx = self._asked(request)
        if self._records.pop(cnx, None) is not None:
            cnx.record_commands(None)
        return web.Response(status=204)

    def _asked(self, request: web.Request) -> ServedConnection:
        text = request.match_info["number"]
        number = int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0
        for cnx in self._connections():
            if cnx.number == number:
                return cnx
        reason = f"there is no connection {text[:40]!r}: see {CONNECTIONS_PATH}"
        raise RestError(404, reason)

    def _described(self, cnx: ServedConnection) -> dict[str, object]:
        return {
            "connection": cnx.number,
            "address": cnx.peer,
            "clientVersion": cnx.shown_version,
            "state": cnx.state.value,
            "pendingBytes": cnx.outbound.pending_bytes,
            "responseBytes": cnx.responses.reserved_bytes,
            "writable": cnx.writable,
            "paused": cnx.paused,
            "proxy": cnx.many_clients,
            "recorded": cnx in self._records,
        }


def _waiting(cnx: ServedConnection) -> tuple[int, int]:
    return cnx.outbound.pending_bytes, -cnx.number
