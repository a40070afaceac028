"""REST routes ``/admin/v2/floodgate/faults``: set, list, await and clear injected faults."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from aiohttp import web

from limiter.clock import deadline
from server.documents import DocumentError
from server.faults.fault import Fault, MoveTopic
from server.faults.registry import TooManyFaultsError
from server.http import RestError, json_response

if TYPE_CHECKING:
    from limiter.clock import Clock
    from server.faults.registry import FaultRegistry, SetFault

FAULTS_PATH = "/admin/v2/floodgate/faults"
FAULT_PATH = f"{FAULTS_PATH}/{{id}}"
WAIT_PATH = f"{FAULT_PATH}/wait"
ENABLED_KEY = "floodgateFaultsEnabled"
MAX_BODY_BYTES = 65_536
MAX_SENTENCES = 5
DEFAULT_WAIT_MS, MAX_WAIT_MS, MAX_WAITS = 10_000, 600_000, 100
CLIENT_CHECK_SECONDS = 1.0
"""Interval between checks whether a waiting client is still connected."""


def fault_routes(
    registry: FaultRegistry | None, clock: Clock, *, serves_topics: bool, shares_topics: bool
) -> list[web.RouteDef]:
    """Return the REST routes about faults; if faults are disabled, they refuse every request.

    Args:
        registry: The active faults; None: faults are disabled, and every request is refused.
        clock: Times the waits.
        serves_topics: Whether topics can be moved from here.
        shares_topics: Whether topics can be moved to a named broker.
    """
    if registry is None:
        paths = (FAULTS_PATH, FAULT_PATH, WAIT_PATH)
        return [web.route("*", path, _off) for path in paths]

    rest = _FaultRest(registry, clock, serves_topics=serves_topics, shares_topics=shares_topics)
    return [
        web.post(FAULTS_PATH, rest.set_fault),
        web.get(FAULTS_PATH, rest.list_faults),
        web.delete(FAULTS_PATH, rest.clear_all),
        web.delete(FAULT_PATH, rest.clear_one),
        web.get(WAIT_PATH, rest.wait),
    ]


class _FaultRest:
    def __init__(
        self, registry: FaultRegistry, clock: Clock, *, serves_topics: bool, shares_topics: bool
    ) -> None:
        self._registry = registry
        self._clock = clock
        self._serves_topics = serves_topics
        self._shares_topics = shares_topics

    async def set_fault(self, request: web.Request) -> web.Response:
        fault = _asked(await request.read())
        if isinstance(fault.do, MoveTopic) and not self._serves_topics:
            raise RestError(412, "moveTopic: a proxy serves no topic; set it at the broker")
        if isinstance(fault.do, MoveTopic) and fault.do.to and not self._shares_topics:
            raise RestError(
                412, 'moveTopic: this broker is alone with its metadata store; remove "to"'
            )
        try:
            return json_response(self._registry.set(fault).as_json())
        except TooManyFaultsError as error:
            raise RestError(409, str(error)) from None

    async def list_faults(self, _: web.Request) -> web.Response:
        return json_response([one.as_json() for one in self._registry])

    async def clear_all(self, _: web.Request) -> web.Response:
        self._registry.clear_all()
        return web.Response(status=204)

    async def clear_one(self, request: web.Request) -> web.Response:
        if not self._registry.clear(request.match_info["id"]):
            raise _no_fault(request)
        return web.Response(status=204)

    async def wait(self, request: web.Request) -> web.Response:
        """Respond once the fault has acted as often as the request says."""
        found = self._registry.get(request.match_info["id"])
        if found is None:
            raise _no_fault(request)
        hits = _number(request, "hits", 1, 10**9)
        timeout_ms = _number(request, "timeoutMs", DEFAULT_WAIT_MS, MAX_WAIT_MS)
        most = found.fault.when.times
        if most is not None and hits > most:
            raise RestError(412, f"hits={hits}: {found.fault_id} acts at most {most} times")
        if self._registry.waits >= MAX_WAITS:
            raise RestError(429, f"{MAX_WAITS} requests wait for faults, the most there may be")
        until = self._clock.now() + timeout_ms / 1000
        while not found.settled(hits):
            left = until - self._clock.now()
            # A client that has left must not keep its place.
            if left <= 0 or request.transport is None:
                raise RestError(408, f"{_acted(found, hits)} within {timeout_ms} ms")
            with suppress(TimeoutError):
                async with deadline(self._clock, min(left, CLIENT_CHECK_SECONDS)):
                    await found.wait(hits)
        if found.schedule.fired < hits:
            raise RestError(404, f"{_acted(found, hits)} before it was cleared")
        return json_response(found.as_json())


def _acted(found: SetFault, hits: int) -> str:
    return f"{found.fault_id} acted {found.schedule.fired} of {hits} times"


def _no_fault(request: web.Request) -> RestError:
    return RestError(404, f"no fault {request.match_info['id'][:50]!r} is set")


def _number(request: web.Request, name: str, default: int, most: int) -> int:
    text = request.query.get(name, "")
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 12 and 1 <= int(text) <= most):
        raise RestError(412, f"{name}={text[:50]!r} should be a number from 1 to {most}")
    return int(text)


async def _off(_: web.Request) -> web.Response:
    raise RestError(404, f"faults are off here: start this server with {ENABLED_KEY}=true")


def _asked(body: bytes) -> Fault:
    if len(body) > MAX_BODY_BYTES:
        raise RestError(413, f"the fault has {len(body)} bytes, of {MAX_BODY_BYTES} at most")
    try:
        return Fault.of_json(body)
    except DocumentError as error:
        said = "; ".join(error.problems[:MAX_SENTENCES])
        raise RestError(412, f"not a valid fault: {said}; docs/faults.md has examples") from None
