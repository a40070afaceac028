"""Recorded admin REST calls: read, repeated, compared.

A row without an exchange is a call: ``request`` (``METHOD path body``), ``status``, ``body``, and
``type``, ``location`` and ``allow`` for headers of the answer. ``headers`` are unusual request
headers. Calls keep the recorded order: each may depend on earlier changes.

Masked: addresses (substituted) and the version; Jackson's words in a plain-text 400, and Jetty's in
a page; varying figures; the key order of dynamic configuration, of which the recording holds only
the beginning.
"""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tests.support.golden.exchange import RECORDED_BROKER, Rest, load_lines, parse_request
from tests.support.golden.masks import Difference

RECORDED_WEB = "127.0.0.1:8080"
"""The recorded broker's web address."""
PARTITIONED_METADATA = "application/vnd.partitioned-topic-metadata+json"
ANSWER_SECONDS = 30.0
OF_THE_MOMENT = ("topic stats", "topic internal info", "broker stats topics", "bookies")
"""Calls whose answers hold dates, ids and loads: only field names are compared."""


@dataclass(frozen=True)
class RestAnswer:
    """An answer; absent headers are None."""

    status: int
    body: str
    content_type: str | None = None
    location: str | None = None
    allow: tuple[str, ...] | None = None
    pulsar_headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Call:
    """A recorded call.

    Attributes:
        name: As recorded.
        request: Method, path and body.
        recorded: The answer.
        headers: Request headers; None for a tool's usual ones.
    """

    name: str
    request: Rest
    recorded: RestAnswer
    headers: Mapping[str, str] | None = None


def load_calls(directory: Path) -> list[Call]:
    """Read all recorded calls of a broker, in order."""
    rows = [row for path in sorted(directory.glob("broker*.jsonl")) for row in load_lines(path)]
    return [replace(call_of(row), headers=row.get("headers")) for row in rows if "request" in row]


def call_of(row: dict[str, Any]) -> Call:
    """Return a recorded row without its headers."""
    allow = tuple(row["allow"]) if "allow" in row else None
    answer = RestAnswer(row["status"], row["body"], row.get("type"), row.get("location"), allow)
    return Call(row["case"], parse_request(row["request"], row["status"]), answer)


class _PlainConnection(http.client.HTTPConnection):
    """Sends a path unmodified, even an invalid path."""

    def _validate_path(self, url: str) -> None:
        pass

    def _encode_request(self, request: str) -> bytes:
        return request.encode("utf-8")


def ask(
    web_address: str,
    request: Rest,
    headers: Mapping[str, str] | None = None,
    timeout_seconds: float = ANSWER_SECONDS,
) -> RestAnswer:
    """Send a request to ``host:port`` without following redirects.

    Args:
        web_address: The server's.
        request: Method, path and body.
        headers: None for a tool's usual ones.
        timeout_seconds: Limit for any part of the answer.

    Raises:
        TimeoutError: The limit was exceeded.
    """
    body = None if request.body is None else request.body.encode("utf-8", "surrogatepass")
    if body is None and request.method in ("PUT", "POST", "PATCH"):
        body = b""
    if headers is None:
        headers = {"Content-Type": _media_type(request)} if body is not None else {}
    connection = _PlainConnection(web_address, timeout=timeout_seconds)
    try:
        connection.putrequest(request.method, request.path, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        answer = connection.getresponse()
        text, allow = answer.read().decode("utf-8", "replace"), answer.getheader("Allow")
        return RestAnswer(
            answer.status,
            text,
            answer.getheader("Content-Type"),
            answer.getheader("Location"),
            None if allow is None else tuple(sorted(allow.replace(" ", "").split(","))),
            tuple(sorted(one for one in answer.getheaders() if one[0].startswith("X-Pulsar-"))),
        )
    finally:
        connection.close()


def _media_type(request: Rest) -> str:
    with_metadata = request.path.endswith("/partitions") and (request.body or "").startswith("{")
    return PARTITIONED_METADATA if with_metadata else "application/json"


def rest_differences(case: Call, answered: RestAnswer, broker: str, web: str) -> list[Difference]:
    """Return every part of an answer that differs after the masks.

    Args:
        case: The recording.
        answered: The answer.
        broker: ``host:port`` by which the answering broker names itself.
        web: ``host:port`` of its web port.
    """
    recorded = case.recorded
    text = answered.body.replace(broker, RECORDED_BROKER).replace(web, RECORDED_WEB)
    pairs = {
        "status": (str(recorded.status), str(answered.status)),
        "type": (str(recorded.content_type), str(answered.content_type)),
        "location": (str(recorded.location), str(answered.location)),
        "body": (comparable(case, recorded.body), comparable(case, text)),
    }
    if recorded.allow is not None:
        pairs["allow"] = (str(recorded.allow), str(answered.allow))
    return [Difference(0, field, *pair) for field, pair in pairs.items() if pair[0] != pair[1]]


def comparable(case: Call, body: str) -> str:
    """Return a body for comparison: JSON by value, masked."""
    if case.name == "version":
        return "<version>"
    if case.name == "dynamic names":
        return str([key in body for key in complete_names(case.recorded.body)])
    if (case.recorded.content_type or "").startswith("text/") and body:
        return "<words>"
    try:
        value = json.loads(body)
    except ValueError:
        return body
    if case.name in OF_THE_MOMENT:
        return str(sorted(value))
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


def complete_names(cut: str) -> list[str]:
    """Return the complete names in a cut JSON array of strings."""
    return [f"{name}" for name in cut.lstrip("[").split(",")[:-1]]
