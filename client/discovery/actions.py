"""The requests that a discovery schedule has made, and the outcomes it is told."""

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
    """GET_TOPICS_OF_NAMESPACE; its outcome is told by ``listed`` or ``list_failed``.

    Attributes:
        pattern: For the broker to apply; None leaves all of it to the client.
        topics_hash: Hash of the list the client has, so that an unchanged one comes back empty.
        properties: PIP-452's, for the broker's plug-in.
    """

    pattern: str | None = None
    topics_hash: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LookUpPattern:
    """A LOOKUP of the pattern, as if it were a topic; nobody needs its outcome."""

    pattern: str


@dataclass(frozen=True, slots=True)
class OpenWatch:
    """WATCH_TOPIC_LIST; its outcome is told by ``watch_opened`` or ``watch_failed``.

    Attributes:
        pattern: What is watched; it is looked up first, as if it were a topic.
        topics_hash: Hash of the list the client has.
        again: On the connection that serves the watch already, without a lookup: it is asked for
            its list.
    """

    pattern: str
    topics_hash: str | None
    again: bool = False


@dataclass(frozen=True, slots=True)
class CloseWatch:
    """WATCH_TOPIC_LIST_CLOSE; its outcome does not matter."""


class Unanswered(Enum):
    """An outcome that no server told."""

    TIMED_OUT = "no answer in time"
    DISCONNECTED = "the connection ended"
    UNREACHABLE = "no connection was to be had"


if TYPE_CHECKING:
    Failure: TypeAlias = Unanswered | pb.ServerError.ValueType
    """A server's error code, or none at all."""


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The subscription fails: its first listing did, and is not asked for again.

    Attributes:
        failure: That of the last attempt.
    """

    failure: Failure


if TYPE_CHECKING:
    Action: TypeAlias = ListTopics | LookUpPattern | OpenWatch | CloseWatch | GiveUp
