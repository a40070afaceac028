"""The body of a request on partitions: a number, or an object with properties beside it.

The media type tells which of the two it is: upstream's clients send the object, its
PartitionedTopicMetadata, as ``application/vnd.partitioned-topic-metadata+json``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.bodies import (
    BadBodyError,
    JsonNumber,
    integer,
    json_body,
    string_map_of,
    whole_number,
)

if TYPE_CHECKING:
    from aiohttp import web

_WHAT = "the number of partitions"
_MAX_PLAIN_BYTES = 1_000
"""Largest number in plain text: some of Python's charsets take minutes to decode a large body."""


async def partition_count(request: web.Request) -> int:
    """Return the number in the body.

    Raises:
        BadBodyError: There is none.
    """
    if not (await request.read()).strip():
        raise BadBodyError("The request entity cannot be empty.", "application/json")
    if request.content_type == "text/plain":
        return _plain_count(await request.read(), request.charset)
    return whole_number(await json_body(request), _WHAT, 500)


async def partitions_and_properties(request: web.Request) -> tuple[int, dict[str, str]]:
    """Return the number of partitions, and the properties of the topic.

    Raises:
        BadBodyError: It is neither number nor object, or a value in it is of another form.
    """
    value = await json_body(request)
    if value is None:
        raise BadBodyError("The request entity cannot be empty.", upstream_status=500)
    if isinstance(value, JsonNumber):
        if not value.lstrip("-").isdigit():
            raise BadBodyError(f"{_WHAT} should be a whole number")
        return whole_number(value, _WHAT), {}
    if not isinstance(value, dict):
        raise BadBodyError("the body should be an object with partitions")
    properties = value.get("properties")
    if not isinstance(properties, dict | None):
        raise BadBodyError("properties should be an object of strings")
    return whole_number(value.get("partitions"), _WHAT), string_map_of(
        properties or {}, "properties"
    )


def _plain_count(body: bytes, charset: str | None) -> int:
    reason = "the body should be a whole number"
    if len(body) > _MAX_PLAIN_BYTES:
        raise BadBodyError(reason, upstream_status=500)
    try:
        text = body.decode(charset or "utf-8")
    except (LookupError, ValueError):
        raise BadBodyError(reason, upstream_status=500) from None
    return integer(text, reason, upstream_status=500)
