"""The wires of a client that discovers topics: what it may ask, and what it is told.

The driver of such a client (a ``FamilyClient``) has no sockets. It asks through wires and is told
through :class:`WireEvents`. What they tell may come before the call that asked returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import proto.PulsarApi_pb2 as pb
    from client.discovery.topics_pattern import TopicsPattern
    from loadgen.clients.answers import AnswerBody


@dataclass(frozen=True, slots=True)
class BrokerAddress:
    """The broker that serves a topic, as a lookup named it.

    Attributes:
        url: ``pulsar://host:port``.
        through_proxy: Whether the service URL leads to a proxy, which is asked for a tunnel.
    """

    url: str
    through_proxy: bool


@dataclass(frozen=True, slots=True)
class ListQuestion:
    """A GET_TOPICS_OF_NAMESPACE.

    Attributes:
        names_wanted: So many names of the answer are told; the others are only counted.
        names_matching: Only names that match are told: a broker may leave that to the client.
    """

    namespace: str
    pattern: str | None = None
    topics_hash: str | None = None
    properties: Mapping[str, str] | None = None
    names_wanted: int = 0
    names_matching: TopicsPattern | None = None


@dataclass(frozen=True, slots=True)
class ListAnswer:
    """A listing that has arrived whole.

    Attributes:
        size_bytes: Of the response.
        topics_hash: As the server says; None where it says none.
        changed: False where the hash that was asked with is still right.
        names: The first of its names, as many as were wanted.
        body: To be verified when the run is over; None in virtual time.
    """

    size_bytes: int
    topics_hash: str | None
    changed: bool
    names: Sequence[str] = ()
    body: AnswerBody | None = None


class Wire(Protocol):
    """One connection that has shaken hands. Each request is answered through its events, once."""

    def list_topics(self, request_id: int, question: ListQuestion) -> None:
        """Send GET_TOPICS_OF_NAMESPACE: ``listed`` or ``refused``."""

    def look_up(self, request_id: int, topic: str) -> None:
        """Send LOOKUP of a topic, or of a pattern: ``looked_up`` or ``refused``."""

    def open_watch(
        self,
        request_id: int,
        watcher_id: int,
        namespace: str,
        pattern: str,
        topics_hash: str | None,
    ) -> None:
        """Send WATCH_TOPIC_LIST: ``watch_opened`` or ``refused``."""

    def close_watch(self, watcher_id: int) -> None:
        """Send WATCH_TOPIC_LIST_CLOSE; its answer is not told."""

    def subscribe(self, request_id: int, consumer_id: int, topic: str, subscription: str) -> None:
        """Send SUBSCRIBE, shared and creating no topic: ``subscribed`` or ``refused``."""

    def close(self) -> None:
        """Close the connection at once; nothing is told any more."""


class WireEvents(Protocol):
    """The end of a wire that is told what happens; requests under way end with their wire."""

    def connected(self, wire: Wire, *, watches: bool, reconciles: bool) -> None:
        """Learn that the handshake is done, and what the server offers."""

    def unreachable(self, reason: str) -> None:
        """Learn that there is no connection."""

    def disconnected(self, reason: str) -> None:
        """Learn that the connection is gone, and with it every request under way."""

    def first_byte(self, request_id: int) -> None:
        """Learn that a listing has begun to arrive."""

    def listed(self, request_id: int, answer: ListAnswer) -> None:
        """Learn that a listing has arrived."""

    def looked_up(self, request_id: int, broker: BrokerAddress) -> None:
        """Learn which broker serves a topic."""

    def watch_opened(self, request_id: int, topics_hash: str, names: int) -> None:
        """Learn that a watch is open."""

    def watch_updated(self, watcher_id: int, topics_hash: str, names: int) -> None:
        """Learn that topics came or went."""

    def subscribed(self, request_id: int) -> None:
        """Learn that a subscription stands."""

    def consumer_closed(self, consumer_id: int) -> None:
        """Learn that the broker closed a consumer: it is to subscribe again."""

    def refused(self, request_id: int, error: pb.ServerError.ValueType, reason: str) -> None:
        """Learn that a request was refused; the reason is masked, so that it can be counted."""


class Wires(Protocol):
    """The maker of one client's connections, which all read as the client's reader does."""

    def begin(self) -> None:
        """Learn that the client starts now: its reader's stalls count from here."""

    def serves(self, broker: BrokerAddress) -> bool:
        """Tell whether the service URL's own connection leads to a broker."""

    def connect(self, events: WireEvents, broker: BrokerAddress | None = None) -> None:
        """Connect to the service URL, or to a broker: ``connected`` or ``unreachable``.

        Args:
            events: Told what happens.
            broker: As ``looked_up`` told it: through the proxy, if it is to be reached so.
        """
