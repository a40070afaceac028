"""``/admin/v2/floodgate/faults``: set (POST), list (GET) and clear (DELETE) faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web
from pydantic import ValidationError

from server.faults.fault import Fault, MoveTopic
from server.faults.registry import TooManyFaultsError
from server.http import RestError, json_response

if TYPE_CHECKING:
    from server.faults.registry import FaultRegistry

FAULTS_PATH = "/admin/v2/floodgate/faults"
ENABLED_KEY = "floodgateFaultsEnabled"
MAX_BODY_BYTES = 65_536
MAX_SENTENCES = 5


def fault_routes(
    registry: FaultRegistry | None, *, serves_topics: bool, shares_topics: bool
) -> list[web.RouteDef]:
    """Return the routes of a server.

    Args:
        registry: The active faults; None: faults are disabled, and every request is refused.
        serves_topics: Whether topics can be moved from here.
        shares_topics: Whether topics can be moved to a named broker.
    """
    if registry is None:
        return [web.route("*", path, _off) for path in (FAULTS_PATH, f"{FAULTS_PATH}/{{id}}")]

    rest = _FaultRest(registry, serves_topics=serves_topics, shares_topics=shares_topics)
    return [
        web.post(FAULTS_PATH, rest.set_fault),
        web.get(FAULTS_PATH, rest.list_faults),
        web.delete(FAULTS_PATH, rest.clear_all),
        web.delete(f"{FAULTS_PATH}/{{id}}", rest.clear_one),
    ]


class _FaultRest:
    def __init__(
        self, registry: FaultRegistry, *, serves_topics: bool, shares_topics: bool
    ) -> None:
        self._registry = registry
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
        fault_id = request.match_info["id"]
        if not self._registry.clear(fault_id):
            raise RestError(404, f"no fault {fault_id[:50]!r} is set")
        return web.Response(status=204)


async def _off(_: web.Request) -> web.Response:
    raise RestError(404, f"faults are off here: start this server with {ENABLED_KEY}=true")


def _asked(body: bytes) -> Fault:
    if len(body) > MAX_BODY_BYTES:
        raise RestError(413, f"a fault of {len(body)} bytes: at most {MAX_BODY_BYTES}")
    try:
        return Fault.model_validate_json(body)
    except ValidationError as error:
        raise RestError(
            412, f"no fault: {_sentences(error)}; docs/faults.md has examples"
        ) from None


def _sentences(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_context=False, include_input=False)
    said = [
        ": ".join(part for part in (".".join(map(str, one["loc"])), _said(one["msg"])) if part)
        for one in found[:MAX_SENTENCES]
    ]
    return "; ".join(said)


def _said(message: str) -> str:
    return message.removeprefix("Value error, ")
