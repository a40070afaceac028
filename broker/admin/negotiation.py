"""HTTP content negotiation: selects endpoints by the body's type, and the response's type.

Source: JAX-RS, as observed at upstream's server, in this order: 405, 400 for an invalid type, 415,
406. Every response is JSON, so a client that does not accept JSON is refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from broker.admin.paths import Endpoint, Takes
from server.http import JSON_TYPE, RestError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

METADATA_TYPE = "application/vnd.partitioned-topic-metadata+json"
_TOKEN = r"[\w.!#$&^*+-]+"
_TYPE = re.compile(rf"\s*({_TOKEN})/({_TOKEN})\s*(?:;\s*{_TOKEN}\s*=[^;]*)*;?\s*", re.ASCII)
_USUAL = f"{JSON_TYPE};charset=utf-8"
"""JSON's type as upstream's web server writes it, in small letters."""
_SHOWN = 60
_JAVA_ORDER = ("HEAD", "DELETE", "POST", "GET", "OPTIONS", "PUT")
_READ_AS_JSON = ("json", "javascript", "x-javascript", "x-json")


def allowed(methods: Mapping[str, Sequence[Endpoint]]) -> list[str]:
    """Return the HTTP methods that a path supports, in upstream's order."""
    names = {*methods, "OPTIONS", *(("HEAD",) if "GET" in methods else ())}
    return [name for name in _JAVA_ORDER if name in names]


def taking(endpoints: Sequence[Endpoint], media_type: str | None, *, has_body: bool) -> Endpoint:
    """Return the first endpoint that accepts a body of the given media type.

    Args:
        endpoints: The endpoints of the requested path and method, at least one.
        media_type: The header Content-Type, if any.
        has_body: Whether the request has a body.

    Raises:
        RestError: 400, the type is invalid; 415, no endpoint takes the type.
    """
    if media_type is None:
        if not has_body:
            return endpoints[0]
        found = [one for one in endpoints if one.takes is Takes.NOTHING]
    else:
        matched = _TYPE.fullmatch(media_type)
        if matched is None:
            raise RestError(400, f"Content-Type={media_type[:_SHOWN]!r} is no media type")
        kind = f"{matched[1]}/{matched[2]}".lower()
        if kind == "text/*" or (kind == "*/*" and len(endpoints) == 1):
            # Upstream reads numbers from any text; of several endpoints */* selects METADATA.
            kind = "text/plain"
        found = [one for one in endpoints if _takes(one.takes, kind)]
    if not found:
        shown = "none" if media_type is None else repr(media_type[:_SHOWN])
        raise RestError(415, f"Content-Type is {shown}, expected is {JSON_TYPE}")
    return found[0]


def _takes(takes: Takes, kind: str) -> bool:
    subtype = kind.partition("/")[2]
    json = subtype in _READ_AS_JSON or subtype.endswith("+json")
    match takes:
        case Takes.NOTHING:
            return True
        case Takes.APPLICATION_JSON:
            return kind == JSON_TYPE
        case Takes.METADATA:
            return kind == METADATA_TYPE
        case Takes.JSON:
            return json
        case Takes.NUMBER:
            return json or kind == "text/plain"


def accepted_type(accept: str) -> str:
    """Return the response's media type: JSON, with parameters from the Accept header.

    Args:
        accept: The header, or empty. A weight of 0 is ignored, as upstream.

    Raises:
        RestError: 406, the client does not accept JSON.
    """
    kinds = [_accepted(one) for one in accept.split(",")]
    taken = [one for one in kinds if one[0] in {"", JSON_TYPE, "application/*", "*/*", "*"}]
    if not taken:
        text = f"Accept={accept[:_SHOWN]!r}: only {JSON_TYPE} is available"
        raise RestError(406, text)
    kind, _, parameters = max(taken, key=lambda one: (one[1], one[0] == JSON_TYPE))
    answered = ";".join([JSON_TYPE, *parameters]) if kind == JSON_TYPE else JSON_TYPE
    return _USUAL if answered.lower() == _USUAL else answered


def _accepted(one: str) -> tuple[str, float, list[str]]:
    """Parse a media type in an Accept header into its name, weight and sorted parameters."""
    kind, *parameters = (part.strip() for part in one.split(";"))
    pairs = {
        name.strip().lower(): value.strip().strip('"')
        for name, _, value in (one.partition("=") for one in parameters)
        if value
    }
    try:
        weight = float(pairs.pop("q", "1"))
    except ValueError:
        weight = 0.0
    return kind.lower(), weight, [f"{name}={value}" for name, value in sorted(pairs.items())]
