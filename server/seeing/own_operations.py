"""OpenAPI descriptions of Floodgate's own REST routes, which Pulsar's admin REST does not have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.permits.ledger import RECENT_EVENTS
from server.faults.fault import Fault
from server.faults.moved_clock import TIME_PATTERN
from server.faults.routes import DEFAULT_WAIT_MS, FAULT_PATH, FAULTS_PATH, MAX_WAIT_MS, WAIT_PATH
from server.http import JSON_TYPE
from server.limiter_report.routes import (
    DEFAULT_HOLDERS,
    FORMATS,
    HISTORY_PATH,
    LIMITER_PATH,
    MAX_HOLDERS,
)
from server.seeing.connections import COMMANDS_PATH, CONNECTIONS_PATH
from server.seeing.openapi import OPENAPI_PATH, Operation, Parameter
from server.seeing.page import PAGE_PATH, STATUS_PATH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from aiohttp import web

_TAG = "floodgate"
_LIMIT = {"type": "integer", "minimum": 0, "maximum": MAX_HOLDERS, "default": DEFAULT_HOLDERS}
_RECENT = {"type": "integer", "minimum": 0, "maximum": RECENT_EVENTS, "default": 0}
_NUMBER = Parameter("number", "A connection's number", {"type": "integer", "minimum": 1}, 1)
_WAIT = {"type": "integer", "minimum": 1, "maximum": MAX_WAIT_MS, "default": DEFAULT_WAIT_MS}
_FAULT = Parameter("id", "A fault's name", {"type": "string"}, "fault-1")

OWN_OPERATIONS = (
    Operation("GET", "/", "Return the paths of this port, as text.", _TAG),
    Operation("GET", OPENAPI_PATH, "Return this description.", _TAG),
    Operation("GET", PAGE_PATH, "Return a page for people: connections and budgets now.", _TAG),
    Operation(
        "GET", PAGE_PATH.removesuffix("/"), "Redirect to the path with a slash.", _TAG, done=(301,)
    ),
    Operation(
        "GET",
        STATUS_PATH,
        "Tell a load balancer whether to send clients here.",
        _TAG,
        refused=(404, 503),
    ),
    Operation("GET", "/metrics", "Redirect to the path with a slash.", "metrics", done=(301,)),
    Operation("GET", "/metrics/", "Return the metrics, for Prometheus.", "metrics"),
    Operation(
        "GET",
        "/admin/v2/brokers/ready",
        "Tell whether clients are served.",
        "brokers",
        refused=(503,),
    ),
    Operation(
        "GET",
        LIMITER_PATH,
        "Return the limiter's figures and the holders of memory.",
        _TAG,
        query=(
            Parameter("limit", "Holders of each budget, and namespaces that wait", _LIMIT),
            Parameter("recent", "Events of the ledger", _RECENT),
            Parameter("format", "The form", {"type": "string", "enum": list(FORMATS)}),
        ),
        refused=(412,),
    ),
    Operation("GET", HISTORY_PATH, "Return the limiter's last ten minutes.", _TAG),
    Operation("GET", CONNECTIONS_PATH, "Return the connections and their states.", _TAG),
    *(
        Operation(
            method, COMMANDS_PATH, what, _TAG, {"number": _NUMBER}, done=(done,), refused=refused
        )
        for method, what, done, refused in (
            ("GET", "Return the last commands of a connection.", 200, (404,)),
            ("PUT", "Start recording the commands of a connection.", 204, (404, 412)),
            ("DELETE", "Stop recording the commands of a connection.", 204, (404,)),
        )
    ),
    Operation(
        "GET",
        "/admin/v2/floodgate/import",
        "Return the running imports: the topics imported so far, by path.",
        _TAG,
    ),
    Operation(
        "POST",
        "/admin/v2/floodgate/import",
        "Import topics from a file or folder of the broker's machine.",
        _TAG,
        bodies={
            JSON_TYPE: {
                "type": "object",
                "required": ["path"],
                "properties": {
                    "path": {"type": "string"},
                    "skipInvalid": {"type": "boolean", "default": False},
                },
            }
        },
        body_required=True,
        refused=(400, 403, 412),
    ),
    Operation(
        "POST",
        FAULTS_PATH,
        "Set a fault: what this server does wrong from now on.",
        _TAG,
        bodies={JSON_TYPE: Fault.schema()},
        body_required=True,
        refused=(404, 409, 412, 413),
    ),
    Operation("GET", FAULTS_PATH, "Return the active faults.", _TAG, refused=(404,)),
    Operation("DELETE", FAULTS_PATH, "Clear all faults.", _TAG, done=(204,), refused=(404,)),
    Operation(
        "DELETE",
        FAULT_PATH,
        "Clear a fault.",
        _TAG,
        {"id": _FAULT},
        done=(204,),
        refused=(404,),
    ),
    Operation(
        "GET",
        WAIT_PATH,
        "Return a fault once it has acted that many times.",
        _TAG,
        {"id": _FAULT},
        query=(
            Parameter(
                "hits", "Actions of the fault", {"type": "integer", "minimum": 1, "default": 1}
            ),
            Parameter("timeoutMs", "Longest wait in milliseconds", _WAIT),
        ),
        refused=(404, 408, 412, 429),
    ),
    Operation(
        "GET", "/admin/v2/floodgate/clock", "Return the broker's time.", _TAG, refused=(404,)
    ),
    Operation(
        "POST",
        "/admin/v2/floodgate/clock",
        "Move the broker's time ahead: expiry, delays, retention and tokens follow.",
        _TAG,
        bodies={
            JSON_TYPE: {
                "type": "object",
                "required": ["advance"],
                "properties": {"advance": {"type": "string", "pattern": TIME_PATTERN}},
            }
        },
        body_required=True,
        refused=(404, 412),
    ),
    Operation(
        "POST",
        "/admin/v2/floodgate/reset",
        "Delete all content, as if the broker were new.",
        _TAG,
        done=(204,),
        refused=(404,),
    ),
)
"""All described routes; a test checks that the list is complete and has no extra routes."""

_KNOWN = {(one.method, one.path): one for one in OWN_OPERATIONS}


def own_operations(app: web.Application) -> Iterator[Operation]:
    """Yield an OpenAPI operation for each of an application's routes with a single HTTP method."""
    for route in app.router.routes():
        if route.resource is not None and route.method not in ("*", "HEAD"):
            asked = (route.method, route.resource.canonical)
            yield _KNOWN.get(asked) or Operation(*asked, "", _TAG)
