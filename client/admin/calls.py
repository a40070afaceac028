"""Admin REST calls for the policies and messages of a namespace or topic, by path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from client.admin.rest import Body
from client.admin.url import namespace_path, path, query, topic_path
from proto.names import NamespaceName, TopicName

if TYPE_CHECKING:
    from collections.abc import Mapping

    from client.admin.rest import AdminRest

Subject: TypeAlias = NamespaceName | TopicName


class Calls:
    """Calls below the path of a namespace or topic. Every method raises AdminError.

    Example:
        await admin.calls.ask("GET", topic, "retention", parameters={"applied": True})
        await admin.calls.ask("POST", topic, "subscription", "s", "skip", 10)
    """

    def __init__(self, rest: AdminRest) -> None:
        self._rest = rest

    async def ask(
        self,
        method: str,
        subject: Subject,
        *segments: object,
        parameters: Mapping[str, str | bool | None] | None = None,
        body: object = None,
    ) -> Any:  # noqa: ANN401 - JSON
        """Return the JSON answer; None for an empty answer.

        Args:
            method: The HTTP method.
            subject: A namespace or topic.
            segments: The rest of the path.
            parameters: Query parameters; empty values are omitted.
            body: Sent as JSON; None for none.
        """
        sent = None if body is None else Body(body)
        return await self._rest.value(method, _path(subject, segments, parameters), sent)

    async def message(
        self,
        topic: TopicName,
        *segments: object,
        parameters: Mapping[str, str | bool | None] | None = None,
    ) -> dict[str, Any]:
        """Return a message: its payload as text, with Pulsar's headers."""
        return await self._rest.message(_path(topic, segments, parameters))


def _path(
    subject: Subject,
    segments: tuple[object, ...],
    parameters: Mapping[str, str | bool | None] | None,
) -> str:
    if isinstance(subject, TopicName):
        base = topic_path(subject)
    else:
        base = namespace_path("namespaces", subject)
    return f"{base}{path(*segments)}{query(**(parameters or {}))}"
