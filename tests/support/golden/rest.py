"""The recorded calls of the admin REST: read, asked again, compared.

A row of a recording without an exchange is such a call: ``request`` (``METHOD path body``),
``status``, ``body``, and ``type``, ``location`` and ``allow`` where the answer had such headers.
``headers`` are those that were sent, where they were not what a tool would send. The calls stand in
the order in which they were made: each may need what those before it changed.

What is masked: the addresses, which are substituted, and the version; the words of Jackson in a
400 of plain text, and of Jetty in a page; figures of the moment; the order of the keys of dynamic
configuration, of which the recording holds the beginning only.
"""

import http.client
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.golden.exchange import RECORDED_BROKER, Rest, parse_request
from tests.support.golden.masks import Difference

RECORDED_WEB = "127.0.0.1:8080"
"""The web address that the recorded broker had."""
PARTITIONED_METADATA = "application/vnd.partitioned-topic-metadata+json"
ANSWER_SECONDS = 30.0
OF_THE_MOMENT = ("topic stats", "topic internal info", "broker stats topics", "bookies")
"""Calls whose answers hold dates, ids and loads: the names of their fields are compared."""


@dataclass(frozen=True)
class RestAnswer:
    """An answer; headers that were not there are None."""

    status: int
    body: str
    content_type: str | None = None
    location: str | None = None
    allow: tuple[str, ...] | None = None
    pulsar_headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class RestCase:
    """One recorded call.

    Attributes:
        name: As recorded.
        request: What was asked.
        recorded: What came back.
        headers: What was sent beside it; None for what a tool would send.
    """

    name: str
    request: Rest
    recorded: RestAnswer
    headers: Mapping[str, str] | None = None


def load_rest_cases(directory: Path) -> list[RestCase]:
    """Read the calls of every recording of a broker, in their order."""
    lines = [
        json.loads(line)
        for path in sorted(directory.glob("broker*.jsonl"))
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    return [_case(row) for row in lines if "request" in row]


def _case(row: dict[str, Any]) -> RestCase:
    allow = tuple(row["allow"]) if "allow" in row else None
    return RestCase(
        row["case"],
        parse_request(row["request"], row["status"]),
        RestAnswer(row["status"], row["body"], row.get("type"), row.get("location"), allow),
        row.get("headers"),
    )


def ask(
    web_address: str,
    request: Rest,
    headers: Mapping[str, str] | None = None,
    timeout_seconds: float = ANSWER_SECONDS,
) -> RestAnswer:
    """Make a call at ``host:port``; redirects are not followed.

    Args:
        web_address: Where.
        request: What is asked.
        headers: What is sent beside it; None for what a tool would send.
        timeout_seconds: The longest that any part of the answer may take.

    Raises:
        TimeoutError: It took longer.
    """
    connection = http.client.HTTPConnection(web_address, timeout=timeout_seconds)
    try:
        body = request.body or ("" if request.method in ("PUT", "POST") else None)
        if headers is None:
            headers = {"Content-Type": _media_type(request)} if body is not None else {}
        connection.request(request.method, request.path, body, dict(headers))
        answer = connection.getresponse()
        text, allow = answer.read().decode(), answer.getheader("Allow")
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


def rest_differences(
    case: RestCase, answered: RestAnswer, broker: str, web: str
) -> list[Difference]:
    """Return every part of an answer that does not agree after the masks.

    Args:
        case: What was recorded.
        answered: What came back.
        broker: ``host:port`` of the broker that answered, as it names itself.
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


def comparable(case: RestCase, body: str) -> str:
    """Return a body as it is compared: JSON by its value, with the masks."""
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
    """Return the names of a JSON array of strings of which only the beginning was recorded."""
    return [f"{name}" for name in cut.lstrip("[").split(",")[:-1]]
