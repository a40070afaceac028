"""REST requests unknown to Pulsar, below ``/admin/v2/floodgate``: clock, imports, reset."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from aiohttp import web

from broker.admin.lockouts import still_superuser
from broker.admin.resources.namespaces import NamespaceAdmin
from broker.columns import EXTRA
from broker.errors import RefusedError
from broker.messages.errors import MessageStoreError
from broker.stores.changes import NamespaceNotEmptyError, StoreError
from limiter.extras import SERVERS, MissingExtraError, extra
from proto.names import NamespaceName
from proto.parquet_folders import parquet_files
from server.faults.moved_clock import TIME_PATTERN
from server.faults.routes import ENABLED_KEY
from server.http import RestError, json_response
from server.tasks.cooperative import in_turns
from server.tasks.freed_memory import free

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from broker.admin.context import AdminContext
    from broker.stores.store import MetadataStore
    from server.faults.moved_clock import MovedClock
    from server.faults.registry import FaultRegistry

CLOCK_PATH = "/admin/v2/floodgate/clock"
MOST_SECONDS = 7 * 86_400
"""Longest move of the clock by a request, as periodic work is done for each interval within."""
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3_600, "d": 86_400}


def clock_routes(clock: MovedClock | None) -> list[web.RouteDef]:
    """Return the routes that show and advance the broker's clock.

    By advancing the clock, tests of expiry, delays, retention and tokens need not wait for real
    time. If ``clock`` is None, every request is refused, because faults and the clock are disabled.
    """

    async def show(_: web.Request) -> web.Response:
        return json_response(_told(_enabled(clock)))

    async def advance(request: web.Request) -> web.Response:
        moved = _enabled(clock)
        await moved.advance(_asked_seconds(await request.read()))
        return json_response(_told(moved))

    return [web.get(CLOCK_PATH, show), web.post(CLOCK_PATH, advance)]


def _enabled(clock: MovedClock | None) -> MovedClock:
    if clock is None:
        raise RestError(
            404, f"the clock cannot be moved: start this broker with {ENABLED_KEY}=true"
        )
    return clock


def _told(clock: MovedClock) -> dict[str, Any]:
    time = datetime.fromtimestamp(clock.wall_ms() / 1000, UTC)
    return {"time": time.isoformat(timespec="milliseconds"), "aheadSeconds": clock.ahead_seconds}


def _asked_seconds(body: bytes) -> float:
    try:
        found = json.loads(body)
    except ValueError:
        found = None
    text = found.get("advance") if isinstance(found, dict) and len(found) == 1 else None
    time = re.match(TIME_PATTERN, text) if isinstance(text, str) else None
    if time is None:
        said = body[:50].decode(errors="replace")
        raise RestError(
            412, f'{said!r} is not a time to advance: write it as {{"advance": "1h"}}, or 90s, 5m'
        )
    seconds = float(time[1]) * _SECONDS[time[2]]
    if seconds > MOST_SECONDS:
        days = MOST_SECONDS // 86_400
        raise RestError(412, f"advance={time[0]}: at most {days}d at once; ask several times")
    return seconds


IMPORT_PATH = "/admin/v2/floodgate/import"
_OFF = "imports at run time are off: set floodgateImportDirectory to a folder they may read"
_MAX_BODY_BYTES = 65_536
"""Largest body: a longer body is cut, and refused, as many members would hold the event loop."""


class ImportRequest(NamedTuple):
    """The body of an import: a file or folder on the broker's machine.

    Attributes:
        path: The file or folder.
        skip_invalid: Whether invalid topics are left out; otherwise an invalid topic fails the
            import.
    """

    path: Path
    skip_invalid: bool


def import_routes(
    store: Callable[[], MetadataStore], allowed: Path | None
) -> list[web.AbstractRouteDef]:
    """Return the routes that import topics and show running imports.

    Args:
        store: Returns the metadata store, to which topics are added.
        allowed: floodgateImportDirectory, the only readable folder; None refuses all imports.
    """
    under_way: dict[str, int] = {}

    async def show(_: web.Request) -> web.Response:
        return web.json_response(under_way)

    async def import_from_path(request: web.Request) -> web.Response:
        asked = _asked(await request.read())
        if allowed is None:
            raise RestError(403, _OFF)
        try:
            with extra(EXTRA, SERVERS):
                from broker.imports.importer import ImportFailedError, import_topics
        except MissingExtraError as error:
            raise RestError(412, f"imports cannot run here: {error}") from None
        path = await asyncio.to_thread(_inside, allowed, asked.path)
        progress = partial(under_way.__setitem__, str(path))
        progress(0)
        try:
            result = await import_topics(store(), path, progress, skip_invalid=asked.skip_invalid)
        except ImportFailedError as error:
            raise RestError(412, str(error)) from None
        except StoreError as error:
            raise RestError(500, str(error)) from None
        finally:
            under_way.pop(str(path), None)
        return web.json_response(
            {
                "topics": result.topics,
                "namespaces": result.namespaces,
                "seconds": result.seconds,
                "skipped": result.skipped,
            }
        )

    return [web.get(IMPORT_PATH, show), web.post(IMPORT_PATH, import_from_path)]


def _asked(body: bytes) -> ImportRequest:
    try:
        asked = json.loads(body[:_MAX_BODY_BYTES].decode())
    except (ValueError, RecursionError):
        asked = None
    given = {"skipInvalid": False, **asked} if isinstance(asked, dict) else {}
    path, skip_invalid = given.get("path"), given.get("skipInvalid")
    if len(given) == 2 and isinstance(path, str) and isinstance(skip_invalid, bool):
        return ImportRequest(Path(path), skip_invalid)
    raise RestError(
        412,
        'the body should be {"path": "/folder/or/file"}, with "skipInvalid": true to leave '
        "invalid topics out",
    )


def _inside(allowed: Path, path: Path) -> Path:
    """Resolve a path, and refuse it if it or a file in it lies outside ``allowed``.

    The check is slow for large folders.
    """
    try:
        resolved, root = path.resolve(), allowed.resolve()
        # Links out of the folder would be read like files.
        if resolved.is_relative_to(root) and all(
            file.resolve().is_relative_to(root) for file in parquet_files(resolved)
        ):
            return resolved
    except (OSError, ValueError, RuntimeError):  # a NUL byte, or a circle of links
        raise RestError(412, f"{str(path)!r} is not a file name") from None
    raise RestError(403, f"{path} does not lie in floodgateImportDirectory={allowed}")


RESET_PATH = "/admin/v2/floodgate/reset"


def reset_routes(
    context: AdminContext, first: Sequence[str], faults: FaultRegistry | None
) -> list[web.RouteDef]:
    """Return the route that resets a broker to the state of a new broker.

    The reset deletes topics, messages, subscriptions, schemas, policies, configuration at run time,
    tenants and namespaces, and clears faults. It is meant for use between the tests of suites that
    share a broker. Connections stay; producers and consumers are closed with their topics.

    Args:
        context: The services of the broker.
        first: The namespaces of a new broker.
        faults: The registry of faults; None if faults and resets are disabled.
    """

    async def reset(request: web.Request) -> web.Response:
        if faults is None:
            raise RestError(404, f"reset is off here: start this broker with {ENABLED_KEY}=true")
        try:
            await context.dynamic.clear(still_superuser(request))
            faults.clear_all()
            await _Reset(context, first).run()
        except RefusedError as error:
            raise RestError(error.refusal.value, error.reason) from None
        except (StoreError, MessageStoreError) as error:
            raise RestError(500, str(error)) from None
        return web.Response(status=204)

    return [web.post(RESET_PATH, reset)]


class _Reset:
    def __init__(self, context: AdminContext, first: Sequence[str]) -> None:
        self._context = context
        self._first = first
        self._namespaces = NamespaceAdmin(context)

    async def run(self) -> None:
        """Delete all content of the broker, then create a new broker's namespaces."""
        context = self._context
        namespaces = await context.store.namespaces()
        await self._namespaces.delete_with_topics(*namespaces)
        await free(namespaces)
        async for tenant in in_turns(await context.store.tenants()):
            try:
                await context.store.delete_tenant(tenant)
            except NamespaceNotEmptyError:
                raise RestError(
                    409,
                    f"clients make namespaces of {tenant} meanwhile: stop them, then reset again",
                ) from None
        context.tenants_changed()
        first = [NamespaceName.parse(name) for name in self._first]
        await context.ownership.namespaces_deleted(first)  # See NamespaceAdmin.create.
        for namespace in first:
            await context.store.create_namespace(namespace)
