"""Compares two servers' answers to the same calls, field by field, after named masks.

A masked field is compared in part; it agrees when the rest agrees, and is counted. Ignoring the
order of JSON objects is no mask.

| mask | not compared | |---|---| | addresses | addresses of servers | | version | version of a
server | | page | words and type of the web server's errors: HTML or empty there, a reason here | |
Java's words | texts of its exceptions: plain text of a 400, and reasons with a class name | |
others' tenants | tenants of other exchanges | | order of non-persistent topics | a real broker
lists topics in a hash map's order | | order of keys | order of the keys of dynamic configuration |
| keys of the runtime | values of ``configuration/runtime``: each server has its own keys | | system
topics | ``__change_events``, which holds policies of topics, and is not built here |
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.differential.rest.calls import RestCall, RestExchange
from tests.support.golden.rest import RestAnswer

FIELDS = ("status", "type", "location", "allow", "body")
"""Compared parts of an answer; the first is its kind."""
_ADDRESS = re.compile(r"\b(?:pulsar://|http://)?127\.0\.0\.1:\d+")
_JAVA = re.compile(r"\b(?:java|javax|org|com|io)\.[a-z]+\.[\w.$]+|\n\tat |HTTP 500")
Value = TypeVar("Value")
_SYSTEM_TOPIC = re.compile(r"/__change_events(?:-partition-\d+)?\Z")


@dataclass(frozen=True, slots=True)
class RestDifference:
    """Differing field of an answer.

    Attributes:
        step: The number of the call, counted from 0.
        field: An element of ``FIELDS``.
        real: The real server's value, after the masks.
        ours: Floodgate's value.
    """

    step: int
    field: str
    real: str
    ours: str


@dataclass(frozen=True, slots=True)
class RestComparison:
    """Compared answers to a call.

    Attributes:
        differences: By field; empty when the answers agree.
        masked: Pairs (field, mask) of fields compared in part.
    """

    differences: tuple[RestDifference, ...]
    masked: frozenset[tuple[str, str]]

    @property
    def kinds_agree(self) -> bool:
        """True if the statuses are equal."""
        return all(one.field != "status" for one in self.differences)


def compare(
    exchange: RestExchange, real: Iterable[RestAnswer], ours: Iterable[RestAnswer]
) -> tuple[RestComparison, ...]:
    """Compare all answers of an exchange, in order."""
    steps = enumerate(zip(exchange.calls, real, ours, strict=True))
    return tuple(
        compare_answers(step, exchange.tenant, call, there, here)
        for step, (call, there, here) in steps
    )


def compare_answers(
    step: int, tenant: str, call: RestCall, real: RestAnswer, ours: RestAnswer
) -> RestComparison:
    masked: set[tuple[str, str]] = set()
    there, here = _fields(tenant, call, real, masked), _fields(tenant, call, ours, masked)
    if real.status == ours.status and _is_page(real):
        masked |= {("type", "page"), ("body", "page")}
        there |= {"type": "<page>", "body": "<page>"}
        here |= {"type": "<page>", "body": "<page>"}
    if real.status == ours.status and ("body", "Java's words") in masked:
        there |= {"body": "<words>"}
        here |= {"body": "<words>"}
    differences = tuple(
        RestDifference(step, field, there[field], here[field])
        for field in FIELDS
        if there[field] != here[field]
    )
    return RestComparison(differences, frozenset(masked))


def _is_page(answer: RestAnswer) -> bool:
    """Return whether an error comes from the web server instead of a Pulsar resource."""
    if answer.status < 400:
        return False
    if answer.content_type is None:
        return not answer.body
    return "charset=iso-8859-1" in answer.content_type or "HTTP ERROR" in answer.body


def _fields(
    tenant: str, call: RestCall, answer: RestAnswer, masked: set[tuple[str, str]]
) -> dict[str, str]:
    body, masks = comparable_body(tenant, call, answer)
    masked |= {("body", mask) for mask in masks}
    location = answer.location or ""
    return {
        "status": str(answer.status),
        "type": str(answer.content_type),
        "location": _ADDRESS.sub("<address>", location),
        "allow": " ".join(answer.allow or ()),
        "body": body,
    }


def comparable_body(tenant: str, call: RestCall, answer: RestAnswer) -> tuple[str, set[str]]:
    """Return a body for comparison, and the applied masks."""
    masks: set[str] = set()
    text = _masked("addresses", masks, answer.body, _ADDRESS.sub("<address>", answer.body))
    if call.kind.endswith("/version") and answer.status == 200:
        return "<version>", {"version"}
    if answer.status == 400 and answer.content_type == "text/plain":
        return "<words>", {"Java's words"}
    try:
        value = json.loads(text)
    except ValueError:
        return text, masks
    value = _comparable_value(tenant, call, answer.status, value, masks)
    return json.dumps(value, sort_keys=True, ensure_ascii=False), masks


def _comparable_value(
    tenant: str, call: RestCall, status: int, value: Any, masks: set[str]
) -> object:
    if isinstance(value, dict) and status >= 400 and _JAVA.search(str(value.get("reason"))):
        masks.add("Java's words")
        return {**value, "reason": "<words>"}
    if isinstance(value, dict) and call.kind.endswith("/configuration/runtime"):
        masks.add("keys of the runtime")
        return "<keys>" if len(value) > 1 else value
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return _comparable_names(tenant, call, value, masks)
    return value


def _comparable_names(tenant: str, call: RestCall, names: list[str], masks: set[str]) -> list[str]:
    if call.kind.endswith("/configuration"):
        return _masked("order of keys", masks, names, sorted(names))
    if call.kind.endswith("/tenants"):
        own = [name for name in names if name.startswith(tenant)]
        return _masked("others' tenants", masks, names, own)
    if any(name.startswith("non-persistent://") for name in names):
        names = _masked("order of non-persistent topics", masks, names, sorted(names))
    kept = [name for name in names if not _SYSTEM_TOPIC.search(name)]
    return _masked("system topics", masks, names, kept)


def _masked(mask: str, masks: set[str], before: Value, after: Value) -> Value:
    if before != after:
        masks.add(mask)
    return after
