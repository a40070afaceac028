"""Requests of each role are admitted, or refused with code and sentence, as recorded."""

import json
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from broker.admin.authorizing import NO_TENANT, RequestAuthorization
from broker.admin.context import AdminContext
from broker.admin.paths import Endpoint, PathTable
from broker.admin.resources.constants import NotImplementedAdmin
from broker.admin.routes import endpoints
from server.authentication.requests import SESSION
from server.http import RestError
from tests.support.security.granted import granted_world, session_named

DATA = Path(__file__).parents[4] / "tests" / "data" / "security"
ROWS: list[dict[str, Any]] = [
    json.loads(line) for line in (DATA / "rest.jsonl").read_text(encoding="utf-8").splitlines()
]
PATHS = PathTable(endpoints(cast("AdminContext", Mock())))
REFUSED = (401, 403)
REFUSED_CODES = tuple(map(str, REFUSED))
RECORDED_ID = "127.0.0.1:23011"
"""The recorded broker's."""
_USED = "/admin/v2/persistent/acme/shop/used"
DEVIATIONS = {
    ("DELETE", f"{_USED}/truncate"): "LOOKUP is asked for before: another sentence",
    ("POST", f"{_USED}/createMissedPartitions"): "of what is not partitioned LOOKUP was enough",
    ("GET", "/lookup/v2/topic/persistent/acme/missing/orders"): "all were told that it is missing",
}
"""Calls with different outcomes for some role, and the reason."""


def endpoint_of(row: dict[str, Any]) -> tuple[Endpoint, web.Request] | None:
    """Return the endpoint of a recorded call and the request, or None without such an endpoint."""
    for resource in PATHS.find(row["path"]):
        if row["method"] in resource.methods:
            request = make_mocked_request(row["method"], row["path"])
            request.match_info.update(resource.variables)
            return resource.methods[row["method"]][0], request
    return None


def comparable(text: str, endpoint: Endpoint) -> str:
    """Return a comparable outcome: calls not implemented lose their sentence and code."""
    mine = getattr(endpoint.handler, "__self__", None)
    if isinstance(mine, NotImplementedAdmin):
        return "allowed" if text == "allowed" else "refused"
    return text.strip()


async def outcome(gate: RequestAuthorization, endpoint: Endpoint, request: web.Request) -> str:
    try:
        await gate.check(endpoint.needs, request)
    except RestError as error:
        return f"{error.status} {error.reason}"
    return "allowed"


def recorded_of(row: dict[str, Any], who: str) -> str:
    """Return the outcome for a credential: allowed, or the refusal's code and sentence."""
    found = next(one for one in row["outcomes"] if who in one["who"])
    refused = found["status"] in REFUSED or found["reason"] == NO_TENANT
    if not refused or who in ("super", "gate for super"):
        return "allowed"
    session = session_named(who)
    original = "null" if session.original is None else session.original.role
    reason = found["reason"].replace("{role}", session.principal.role)
    return f"{found['status']} {reason.replace('{original}', original)}"


def says_something(row: dict[str, Any]) -> bool:
    """Tell whether authorization decided, not an earlier check of body or settings."""
    nobody = next(one for one in row["outcomes"] if "nobody" in one["who"])
    return nobody["status"] not in (400, 405, 412, 415, 500, 0)


async def test_each_role_is_admitted_or_refused_as_recorded_of_a_real_broker() -> None:
    service = await granted_world()
    gate, refusals = RequestAuthorization(service, lambda: RECORDED_ID), 0
    different: dict[tuple[str, str], tuple[str, str, str]] = {}
    compared = 0
    for row in filter(says_something, ROWS):
        found = endpoint_of(row)
        if found is None:
            continue
        for who in (one for group in row["outcomes"] for one in group["who"]):
            if who.startswith("("):
                continue
            session = session_named(who)
            found[1][SESSION] = session  # type: ignore[misc]
            expected, came = recorded_of(row, who), await outcome(gate, *found)
            compared += 1
            refusals += came.startswith(REFUSED_CODES)
            if comparable(came, found[0]) != comparable(expected, found[0]):
                different[row["method"], row["path"]] = who, expected, came
    assert compared > 4000
    assert sum(service._refused.counts.values()) == refusals
    assert set(different) == set(DEVIATIONS), different
