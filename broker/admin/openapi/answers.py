"""Statuses with which operations are answered: of success, and of refusals about their subject."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

DONE: dict[str, tuple[int, ...]] = {
    "BrokerAdmin.delete_value": (200,),
    "BrokerAdmin.enforce_quotas": (204,),
    "BrokerAdmin.set_value": (200,),
    "LifecycleAdmin.terminate": (200,),
    "LifecycleAdmin.terminate_partitions": (200,),
    "LifecycleAdmin.trim": (200,),
    "OtherPolicyAdmin.remove_property": (200,),
    "ReadingAdmin.analyze": (200,),
    "ReadingAdmin.backlog_size": (200,),
    "SchemaAdmin.compatibility": (202,),
    "SchemaAdmin.delete": (200,),
    "SchemaAdmin.post": (200,),
    "SchemaAdmin.version_of": (200,),
    "_Calls.get": (200, 204),
    "_Calls.set": (204, 200),
    "_OfTopics.get": (200, 204),
}
"""Handlers that are answered otherwise than 200 to GET and 204 to changes."""
REFUSED: dict[str, tuple[int, ...]] = {
    "NamespaceAdmin.create": (403,),
    "OtherPolicyAdmin.set_clusters": (403,),
    "LifecycleAdmin.terminate": (406,),
    "ReadingAdmin.examine": (422,),
    "ReadingAdmin.peek": (422,),
    "ReadingAdmin.by_id": (422,),
    "SchemaAdmin.compatibility": (422,),
    "SchemaAdmin.post": (422,),
    "ShadowTopicAdmin.set": (403,),
    "TopicAdmin.create_partitioned": (406, 422),
    "TopicAdmin.create_with_metadata": (406, 422),
    "TopicAdmin.get_properties": (406,),
    "TopicAdmin.grow": (406, 422),
    "TopicAdmin.remove_property": (406,),
    "TopicAdmin.update_properties": (406,),
}
"""Refusals that few handlers have."""


def done(method: str, handler: str) -> tuple[int, ...]:
    """Return the statuses of success of a handler, by its name."""
    return DONE.get(handler, (200,) if method == "GET" else (204,))


def refused(
    method: str, handler: str, variables: Sequence[str], *, has_body: bool
) -> Iterator[int]:
    """Yield the statuses of refusals, by what an operation is about.

    Args:
        method: The HTTP method.
        handler: The name of its handler.
        variables: Those of the path.
        has_body: Whether it takes one.
    """
    if "namespace" in variables:
        yield 307
    if variables or has_body:
        yield 400
    if variables:
        yield 404
    if "topic" in variables:
        yield 405
    if method != "GET":
        yield 409
    if variables or has_body:
        yield 412
    if has_body:
        yield 415
    yield from REFUSED.get(handler, ())
