"""A call for each admin REST endpoint, and each credential's answer."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast
from unittest.mock import Mock

from broker.admin.context import AdminContext
from broker.admin.paths import REST, Endpoint, Takes
from broker.admin.routes import endpoints
from tests.support.golden.exchange import Rest, load_lines
from tests.support.golden.rest import PARTITIONED_METADATA, RestAnswer, ask
from tests.support.security.credentials import Credential
from tests.support.security.world import build

_VALUES = {
    "domain": "persistent",
    "tenant": "acme",
    "namespace": "shop",
    "topic": "used",
    "bundle": "0x00000000_0x40000000",
    "subscription": "sub",
    "role": "someone",
    "timestamp": "0",
    "numMessages": "1",
    "messagePosition": "1",
    "expireTimeInSeconds": "1",
    "ledgerId": "0",
    "entryId": "0",
    "version": "0",
    "rest": "x",
    "cluster": "elsewhere",
}
"""Values for path variables; the rest stand for themselves."""
_SECONDS = 1.0
"""A slower answer is recorded as status 0: the call was not refused."""
_SECONDS_MORE = 0.1
"""Waiting time after an unanswered call."""
_TAGS = re.compile(r"<[^>]*>")
_NEVER = {("POST", "/admin/v2/brokers/shutdown")}
_OTHERS = (
    ("GET", "/admin/v2/namespaces/acme/missing"),
    ("GET", "/admin/v2/namespaces/acme/missing/topics"),
    ("GET", "/admin/v2/namespaces/acme/missing/retention"),
    ("GET", "/admin/v2/namespaces/missing"),
    ("GET", "/admin/v2/namespaces/missing/shop"),
    ("GET", "/admin/v2/persistent/acme/missing"),
    ("GET", "/admin/v2/persistent/missing/shop"),
    ("GET", "/admin/v2/persistent/acme/shop/missing/stats"),
    ("GET", "/admin/v2/persistent/acme/shop/orders/stats"),
    ("GET", "/admin/v2/persistent/acme/shop/orders/subscriptions"),
    ("GET", "/admin/v2/persistent/acme/shop/orders/partitions"),
    ("GET", "/admin/v2/persistent/acme/shop/orders/lastMessageId"),
    ("GET", "/admin/v2/persistent/acme/shop/parted/partitions"),
    ("GET", "/admin/v2/persistent/acme/shop/parted-partition-0/stats"),
    ("POST", "/admin/v2/persistent/acme/shop/orders/subscription/owned/skip_all"),
    ("GET", "/admin/v2/schemas/acme/shop/orders/schema"),
    ("GET", "/lookup/v2/topic/persistent/acme/shop/orders"),
    ("GET", "/lookup/v2/topic/persistent/acme/shop/other"),
    ("GET", "/lookup/v2/topic/persistent/acme/missing/orders"),
    ("GET", "/admin/v2/clusters/standalone"),
    ("GET", "/admin/v2/tenants/missing"),
    ("PUT", "/admin/v2/namespaces/acme/new"),
    ("PUT", "/admin/v2/namespaces/missing/new"),
    ("PUT", "/admin/v2/tenants/new"),
    ("GET", "/admin/v2/no/such/path"),
    ("GET", "/admin/v2/broker-stats/topics"),
    ("GET", "/admin/v2/broker-stats/metrics"),
    ("GET", "/admin/v2/broker-stats/load-report"),
    ("GET", "/metrics"),
    ("GET", "/metrics/"),
    ("GET", "/status.html"),
    ("OPTIONS", "/admin/v2/tenants"),
    ("PATCH", "/admin/v2/tenants"),
)
"""Calls beside the endpoints' own."""


def calls() -> Iterator[tuple[str, str, Takes]]:
    """Yield every call: method, path and the endpoint's body."""
    seen = set()
    for endpoint in endpoints(cast("AdminContext", Mock())):
        call = endpoint.method, _path(endpoint)
        if endpoint.path.endswith(REST):
            continue  # Parts of Pulsar that a lone broker lacks.
        if call not in _NEVER and call not in seen:
            seen.add(call)
            yield *call, endpoint.takes
    for call in _OTHERS:
        yield *call, Takes.NOTHING


def _path(endpoint: Endpoint) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: _VALUES.get(found[1], found[1]), endpoint.path)


def record(web: str, samples: Path, who: Sequence[Credential]) -> Iterator[dict[str, Any]]:
    """Yield each credential's answer to each call.

    Args:
        web: ``host:port`` of a broker with the world.
        samples: A recording of calls, with bodies for calls refused without.
        who: Most privileged last, so that nothing is deleted too early.
    """
    bodies = _sample_bodies(samples)
    nobody = next(one for one in who if one.name == "nobody")
    for method, path, takes in calls():
        body = "" if takes is not Takes.NUMBER else "1"
        media_type = PARTITIONED_METADATA if takes is Takes.METADATA else "application/json"
        sample = bodies.get((method, _tail(path)))
        sent = _sent(method, path, body)
        first = _asked(web, sent, nobody.headers | {"Content-Type": media_type}, _SECONDS)
        if first.status not in (401, 403) and sample:
            sent = _sent(method, path, sample)
        outcomes: dict[tuple[int, str], list[str]] = {}
        changed = False
        patience = _SECONDS
        for one in who:
            content = {"Content-Type": media_type} if method in ("PUT", "POST") else {}
            answer = _asked(web, sent, one.headers | content, patience)
            patience = patience if answer.status else _SECONDS_MORE
            reason = sentence(answer.body, one) if answer.status >= 400 else ""
            outcomes.setdefault((answer.status, reason), []).append(one.name)
            changed |= 0 < answer.status < 300 and method != "GET"
        if changed:
            build(web)
        yield {
            "method": method,
            "path": path,
            **({"body": sent.body} if sent.body else {}),
            **({"type": media_type} if takes is Takes.METADATA else {}),
            "outcomes": [
                {"status": status, "reason": reason, "who": names}
                for (status, reason), names in outcomes.items()
            ],
        }


def _asked(web: str, sent: Rest, headers: dict[str, str], seconds: float) -> RestAnswer:
    try:
        return ask(web, sent, headers, seconds)
    except TimeoutError:
        return RestAnswer(0, "")


def _sent(method: str, path: str, body: str) -> Rest:
    return Rest(method, path, body if method in ("PUT", "POST") else None, 0)


def sentence(text: str, asker: Credential) -> str:
    """Return an answer's reason, or its text; the role is left out."""
    try:
        reason = str(json.loads(text)["reason"])
    except (ValueError, KeyError, TypeError):
        reason = _TAGS.sub(" ", text)
    role = asker.name.partition(" for ")[0]
    original = asker.original or "null"
    reason = reason.replace(f"clientAppId [{role}]", "clientAppId [{role}]")
    reason = reason.replace(f"originalPrincipal [{original}]", "originalPrincipal [{original}]")
    return " ".join(reason.split())[:200]


def _sample_bodies(path: Path) -> dict[tuple[str, str], str]:
    """Return each call's first successful body, by method and end of path."""
    found: dict[tuple[str, str], str] = {}
    for row in load_lines(path):
        if "request" not in row or row["status"] >= 300:
            continue
        method, called, *body = row["request"].split(" ", 2)
        if body:
            found.setdefault((method, _tail(called)), body[0])
    return found


def _tail(path: str) -> str:
    return path.partition("?")[0].rpartition("/")[2]
