"""The body of a request on partitions: a number, or an object with properties beside it.

Source: upstream PartitionedTopicMetadata, which clients send as
``application/vnd.partitioned-topic-metadata+json``. Differs: the value decides here, not its media
type.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from broker.admin.requests import BadBodyError, json_body, string_map_of

if TYPE_CHECKING:
    from aiohttp import web

_LARGEST = 2**31 - 1


async def partition_count(request: web.Request) -> int:
    """Return the number in the body.

    Raises:
        BadBodyError: There is none.
    """
    return _count(await json_body(request))


async def partitions_and_properties(request: web.Request) -> tuple[int, dict[str, str]]:
    """Return the number of partitions, and the properties of the topic.

    Raises:
        BadBodyError: There is no number, or the properties are of another form.
    """
    value = await json_body(request)
    if not isinstance(value, dict):
        return _count(value), {}
    properties = value.get("properties") or {}
    if not isinstance(properties, dict):
        raise BadBodyError("properties should be an object of strings")
    return _count(value.get("partitions", 0)), string_map_of(properties, "properties")


def _count(value: object) -> int:
    """Read a number as Java's parser does: of a text, and without what follows the point."""
    if value is None:
        raise BadBodyError("The request entity cannot be empty: give the number of partitions")
    try:
        number = math.trunc(float(value)) if isinstance(value, (int, float, str)) else None
    except (ValueError, OverflowError):
        number = None
    if number is None or isinstance(value, bool) or abs(number) > _LARGEST:
        raise BadBodyError("the number of partitions should be a whole number")
    return number
