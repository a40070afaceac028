"""Execution of a scenario's planned shocks during the run, such as restarts of servers."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

from client.admin.errors import AdminError
from loadgen.access import admin_of
from loadgen.engine.rows import EventRow, Rows
from loadgen.errors import LoadgenError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.documents.model import Shock
    from loadgen.places.launcher import RunningServers
    from loadgen.places.relay import Relay
    from loadgen.places.sampling import ServerWatch

NO_CLIENT = -1
"""The client number in the rows of events without a client."""
_ADMIN_SECONDS = 10.0


class Shocks:
    """The shocks of a run, performed by threads during a ``with`` block.

    Mutable state: the shocks performed so far.

    Args:
        shocks: The planned shocks, in any order.
        servers: The servers started by the run; None if the servers ran before.
        relay: The link to the service URL, for shocks of the link.
        admin_url: The URL of the web port for changes of configuration keys.
        watch: Notified when a server has a new process.
    """

    def __init__(
        self,
        shocks: Sequence[Shock],
        servers: RunningServers | None,
        relay: Relay | None,
        admin_url: str,
        watch: ServerWatch,
    ) -> None:
        self._shocks = sorted(shocks, key=lambda each: each.at)
        self._servers = servers
        self._relay = relay
        self._admin_url = admin_url
        self._watch = watch
        self._over = threading.Event()
        self._threads = ThreadPoolExecutor(max(1, len(shocks)), "shock")
        self._performed: list[Future[dict[str, Any] | None]] = []

    def agreed(self, t0_epoch_seconds: float) -> None:
        """Schedule the shocks for the run's agreed start; later calls do nothing."""
        if not self._performed:
            submit = self._threads.submit
            self._performed = [
                submit(self._perform, each, t0_epoch_seconds) for each in self._shocks
            ]

    def __enter__(self) -> Shocks:
        return self

    def __exit__(self, *exc: object) -> None:
        self._over.set()
        self._threads.shutdown()

    def happened(self, *, interrupted: bool) -> list[dict[str, Any]]:
        """Return each performed shock with its start and end, in seconds since the run's start.

        Called after the ``with`` block.

        Args:
            interrupted: Whether the run ended early, before later shocks.

        Raises:
            LoadgenError: A server did not become ready again, or the run was over before a shock.
        """
        found = [each.result() for each in self._performed]
        for shock, one in zip_longest(self._shocks, found):
            if one is None and not interrupted:
                raise LoadgenError(too_early(shock))
        return [each for each in found if each is not None]

    def _perform(self, shock: Shock, t0_epoch_seconds: float) -> dict[str, Any] | None:
        """Wait for a shock's moment, perform and describe it; None if the run ended before."""
        if self._over.wait(max(0.0, t0_epoch_seconds + shock.at - time.time())):
            return None
        begun = time.time()
        if (undo := self._act(shock)) is not None:
            self._over.wait(shock.seconds)
            undo()
        return told(shock, begun - t0_epoch_seconds, time.time() - t0_epoch_seconds)

    def _act(self, shock: Shock) -> Callable[[], object] | None:
        """Perform a shock; return a function that ends it, or None for a shock without a length."""
        servers, relay = self._servers, self._relay
        if shock.set is not None:
            asyncio.run(_change(self._admin_url, shock.set))
        elif relay is not None and (shock.cut or shock.slow):
            relay.slow(shock.slow or 0.0)
            if shock.cut:
                relay.cut()
            return relay.mend
        elif servers is not None and shock.role:
            server = servers.by_role[shock.role]
            away = shock.lasts if shock.restart else None
            getattr(server, shock.kind)(*([partial(self._over.wait, away)] if away else []))
            self._watch.restarted(shock.role, server.server.pid)
            return server.go_on if shock.pause else None
        return None  # The tasks drop a group's connections.


def told(shock: Shock, at: float, ready_seconds: float) -> dict[str, Any]:
    """Describe a performed shock, including its start and end in seconds since the run's start."""
    return {"at": at, "what": shock.words, "ready_seconds": ready_seconds}


def too_early(shock: Shock) -> str:
    """Return the error sentence for a run that ended before a shock."""
    return (
        f"the run was over before its shock, {shock.words} (at {shock.at:g} s): make it longer, "
        "or the shock earlier"
    )


def require_own(shocks: Sequence[Shock], admin_url: str) -> None:
    """Refuse shocks of servers not started by the run.

    Raises:
        UsageError: Such a shock exists, or a change of a configuration key has no ``--admin-url``.
    """
    for shock in shocks:
        if shock.role or shock.cut or shock.slow:
            what = shock.role or "link"
            raise UsageError(
                f"shock {shock.words}: the {what} is not this run's own: leave out --service-url, "
                "or the shock"
            )
        if shock.set is not None and not admin_url:
            raise UsageError(f"shock {shock.words}: name --admin-url broker=http://host:port")


def shock_events(happened: Sequence[dict[str, Any]]) -> Rows:
    """Return the shocks as rows for the run's table of events."""
    rows = Rows()
    for each in happened:
        for what, at in (("shock", each["at"]), ("shock-over", each["ready_seconds"])):
            took = each["ready_seconds"] - each["at"] if what == "shock" else None
            rows.events.append(EventRow(at, NO_CLIENT, "", "", "", what, took, each["what"]))
    return rows


async def _change(admin_url: str, keys: dict[str, str]) -> None:
    try:
        async with admin_of(admin_url, _ADMIN_SECONDS) as admin:
            for key, value in keys.items():
                await admin.brokers.update_dynamic(key, value)
    except AdminError as error:
        raise LoadgenError(f"the broker's keys could not be changed: {error}") from error
