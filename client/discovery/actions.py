"""The requests of a discovery schedule, and their outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    import proto.PulsarApi_pb2 as pb


@dataclass(frozen=True, slots=True)
class ListTopics:
    """GET_TOPICS_OF_NAMESPACE; reported by ``listed`` or ``list_failed``.

    Attributes:
        pattern: Applied by the broker; None leaves matching to the client.
        topics_hash: Hash of the client's list; an unchanged list comes back empty.
        properties: PIP-452's, for the broker's plug-in.
    """

    pattern: str | None = None
    topics_hash: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LookUpPattern:
    """A LOOKUP of the pattern like a topic; the outcome is ignored."""

    pattern: str


@dataclass(frozen=True, slots=True)
class OpenWatch:
    """WATCH_TOPIC_LIST; reported by ``watch_opened`` or ``watch_failed``.

    Attributes:
        pattern: The watched pattern; first looked up like a topic.
        topics_hash: Hash of the client's list.
        again: Whether to request the open watch's list on its connection, without a lookup.
    """

    pattern: str
    topics_hash: str | None
    again: bool = False


@dataclass(frozen=True, slots=True)
class CloseWatch:
    """WATCH_TOPIC_LIST_CLOSE; the outcome is ignored."""


class Unanswered(Enum):
    """An outcome without a server's answer."""

    TIMED_OUT = "no answer in time"
    DISCONNECTED = "the connection ended"
    UNREACHABLE = "no connection was to be had"


if TYPE_CHECKING:
    Failure: TypeAlias = Unanswered | pb.ServerError.ValueType
    """A server's error code, or none at all."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The subscription fails: its first listing failed for good.

    Attributes:
        failure: The last attempt's failure.
    """

    failure: Failure


if TYPE_CHECKING:
    Action: TypeAlias = ListTopics | LookUpPattern | OpenWatch | CloseWatch | GiveUp
