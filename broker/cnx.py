"""The broker's side of a client connection: its state, its requests, and its end.

The handlers of commands are in broker.commands.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from broker.authorization.revocation import Use
from broker.messages.producer import LEAST_GRACE_SECONDS, ClosedProducers
from broker.messages.publishing.throttling import ConnectionPublishes
from broker.ownership.ownership import bundle_of_topic
from broker.stores.changes import StoreError
from proto.commands import NO_REQUEST, Type
from proto.excerpts import one_line
from proto.frames import encode_command
from proto.names import InvalidNameError, TopicName
from proto.transport.turn_writer import TurnWriter
from proto.transport.weak_calls import weakly
from proto.version import PROTOCOL_VERSION
from server.configuration.common import Profile
from server.connection.keep_alive_timer import LivenessCheck
from server.connection.permitted_requests import PermitRules, PermittedRequests
from server.connection.request_errors import RequestError
from server.connection.served_connection import ServedConnection
from server.tasks.cooperative import SharedTurns, ShortWork

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from broker.authorization.questions import CommandAuthorization
    from broker.configuration.config import BrokerConfig
    from broker.listing.handler import GetTopicsHandler
    from broker.messages.loading.loaded_topics import LoadedTopics
    from broker.messages.producer import Producer
    from broker.messages.producers import ProducerNames
    from broker.messages.publishing.checks import PublishRules
    from broker.messages.publishing.throttling import PublishLimits
    from broker.messages.subscriptions.consumer import Consumer
    from broker.ownership.ownership import Ownership
    from broker.policies.service import PolicyService
    from broker.schemas.registry import SchemaRegistry
    from broker.stores.store import MetadataStore
    from broker.topics.lookup import LookupHandler
    from broker.watches.service import TopicListService
    from limiter.memory.response_memory import ResponseMemory
    from proto.frames import Frame
    from proto.names import NamespaceName
    from server.authentication.handshake import ConnectRules
    from server.authentication.session import ClientSession, CredentialRefresh
    from server.connection.command_table import CommandTable
    from server.connection.counters import ConnectionCounters
    from server.connection.flow_parts import FlowParts
    from server.tls.handshakes import AcceptedTls


logger = logging.getLogger(__name__)

_CLOSES: frozenset[int] = frozenset((Type.CLOSE_PRODUCER, Type.CLOSE_CONSUMER))
_SINCE: dict[int, int] = {
    **dict.fromkeys(_CLOSES, 5),
    Type.REACHED_END_OF_TOPIC: 9,
    Type.ACTIVE_CONSUMER_CHANGE: 12,
}
"""First protocol version with a command that clients do not ask for."""
LEAVING_A_STEP = 500
"""Consumers of a lost connection removed in one step."""


class ServerCnxState(Enum):
    """The state of a client connection (upstream: ServerCnx.State)."""

    START = "before CONNECT"
    CONNECTED = "connected"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class BrokerParts:
    """The broker's services and settings that all client connections share.

    Attributes:
        namespace_named: Returns the namespace of a client's text, or refuses it.
        joins: Attaches consumers, and processes long commands in steps.
        leaving: Removes the consumers of lost connections, in steps.
        authentication: Identifies peers; None: every client is served.
        authorization: Checks permissions; None: everything is allowed.
    """

    config: BrokerConfig
    commands: CommandTable
    flow: FlowParts
    permits: PermitRules
    namespace_named: Callable[[str], NamespaceName]
    lookup_handler: LookupHandler
    topics_handler: GetTopicsHandler
    policies: PolicyService
    watches: TopicListService
    memory: ResponseMemory
    counters: ConnectionCounters
    connections: set[ServerCnx]
    ownership: Ownership
    loaded_topics: LoadedTopics
    producer_names: ProducerNames
    publish_rules: PublishRules
    schemas: SchemaRegistry
    publish_limits: PublishLimits
    store: MetadataStore
    joins: ShortWork = field(default_factory=ShortWork)
    leaving: SharedTurns = field(default_factory=SharedTurns)
    authentication: ConnectRules | None = None
    authorization: CommandAuthorization | None = None

    @property
    def refuses_ids_in_use(self) -> bool:
        """True if a producer or consumer id is refused while another topic uses it.

        Otherwise (profile pulsar) the producer or consumer of the first topic answers.
        """
        return self.config.profile is not Profile.PULSAR

    @property
    def serves_sought(self) -> bool:
        """True if a consumer closed by its own SEEK may send commands until it subscribes again."""
        return self.config.profile is not Profile.PULSAR


class ServerCnx(ServedConnection):
    """The broker's side of one client connection.

    Attributes:
        parts: The broker's parts.
        requests: In-flight requests.
        session: The authenticated peer; None without authentication.
        protocol_version: The client's protocol version in CONNECT.
        refresh: Checks the validity of the peer's credentials.
        listed_in_chunk: Number of the received chunk with the last immediately answered listing.
        producers: Producers by id, including opening producers.
        consumers: Consumers by id.
        sought: Consumers closed by their own SEEK that have not subscribed again, by id.
        subscribing: Consumer ids with a SUBSCRIBE in flight; False if closed meanwhile.
        turn_writer: Sends receipts and messages, one write per iteration.
        publishes: In-flight messages, and the reasons for pausing reads.
        takes_messages: False: published messages are dropped, because the broker shuts down.
        closed_by_broker: Ids of producers that this broker closed; their messages are ignored.

    Source: upstream ServerCnx.
    """

    def __init__(self, parts: BrokerParts, tls: AcceptedTls | None = None) -> None:
        super().__init__(parts.flow, parts.commands, parts.config.max_message_size, tls)
        self.parts = parts
        self.session: ClientSession | None = None
        self.protocol_version = PROTOCOL_VERSION
        self.refresh: CredentialRefresh | None = None
        self.listed_in_chunk = 0
        self.takes_messages = True
        self.when_lost(parts.watches.cancel_owner, parts.memory.cancel_owner)
        self.requests = PermittedRequests(self, parts.permits)
        self.producers: dict[int, Producer] = {}
        self.consumers: dict[int, Consumer] = {}
        self.sought: dict[int, Consumer] = {}
        self.subscribing: dict[int, bool] = {}
        self._liveness = LivenessCheck(
            weakly(self.ask_whether_it_reads), self.abort, parts.flow.clock
        )
        self.when_lost(_consumers_leave)
        self.turn_writer = TurnWriter(self.enqueue)
        self.closed_by_broker = ClosedProducers(
            parts.flow.clock, max(parts.flow.keep_alive_seconds, LEAST_GRACE_SECONDS)
        )
        self.publishes = ConnectionPublishes(self.gate, parts.publish_limits)
        self.when_lost(ServerCnx._end_producers)

    @property
    def role(self) -> str | None:
        """The connected peer's authenticated role; None without authentication."""
        return None if self.session is None else self.session.principal.role

    def send(self, command: pb.BaseCommand) -> None:
        """Send a command after the receipts and messages queued in this event-loop iteration.

        A client whose protocol version lacks the command does not get it. Its connection is closed
        instead if a producer or consumer was.
        """
        if self._lacks(command.type):
            return
        self.turn_writer.flush()
        if command.type == Type.ERROR:
            self.parts.counters.errors[pb.ServerError.Name(command.error.error)] += 1
        super().send(command)

    def send_with_turn(self, command: pb.BaseCommand) -> None:
        """Send a command in one write with the receipts and messages queued in this iteration.

        As ``send``, for a client whose protocol version lacks the command.
        """
        if not self._lacks(command.type):
            self.turn_writer.add(encode_command(command))

    def _lacks(self, kind: int) -> bool:
        lacks = kind in _SINCE and self.protocol_version < _SINCE[kind]
        if lacks and kind in _CLOSES:
            self.close()
        return lacks

    async def answers_ping(self) -> bool:
        """Ping the client; if it does not answer in time, close the connection and return False.

        Called when another client requests this client's producer name or Exclusive subscription.
        With a time limit of 0 every client counts as alive, without a ping.
        """
        seconds = self.parts.config.liveness_check_ms / 1000
        return seconds <= 0 or await self._liveness.lives(seconds)

    def frame_received(self, frame: Frame) -> None:
        """Process a received frame, which also proves that the client is alive.

        First checks whether this broker was suspended and so has lost its bundles.
        """
        self.parts.ownership.notice()
        self._liveness.heard()
        super().frame_received(frame)

    def connected(self) -> None:
        """Count the new connection, also as failed if the broker has refused it."""
        self.parts.connections.add(self)
        self.parts.counters.opened()
        if self.refusal is not None:
            self.parts.counters.create_fail += 1
        super().connected()

    def lost(self, error: Exception | None) -> None:
        """Stop the timers of the lost connection, and count its end.

        The callbacks of ``when_lost`` follow.
        """
        super().lost(error)
        self.state = ServerCnxState.FAILED
        self._liveness.lost()
        if self.refresh is not None:
            self.refresh.stop()
            self.refresh = None
        if self.served:
            self.parts.connections.discard(self)
            self.parts.counters.closed()

    def producer_was_closed(self, producer_id: int) -> None:
        """Ignore, for a limited time, messages of a producer that this broker has closed."""
        self.closed_by_broker.add(producer_id)

    def uses(self) -> Iterator[Use]:
        """Yield the names of the topics, subscriptions and namespaces that the connection uses."""
        for producer in self.producers.values():
            if producer.topic is not None:
                yield Use(producer.topic.name, None, producer.disconnect)
        for one in self.consumers.values():
            subscription = one.subscription
            yield Use(subscription.topic.name, subscription.name, partial(_close_consumer, one))
        for number, one in self.sought.items():
            subscription = one.subscription
            yield Use(subscription.topic.name, subscription.name, partial(self.sought.pop, number))
        if self.parts.config.profile is not Profile.PULSAR:
            for namespace in self.parts.watches.registry.watched(self):
                yield Use(namespace, None, self._leave)

    def _leave(self) -> None:
        """Close the connection because its client may no longer watch a namespace.

        The protocol cannot end a watch alone.
        """
        self.take_no_more()
        self.close()

    # -- faults -------------------------------------------------------------------------------

    def topic_of_producer(self, producer_id: int) -> str:
        """Return the full name of a producer's topic, or "" if the producer is unknown."""
        producer = self.producers.get(producer_id)
        return "" if producer is None or producer.topic is None else producer.topic.full_name

    def topic_of_consumer(self, consumer_id: int) -> str:
        """Return the full name of a consumer's topic, or "" if the consumer is unknown."""
        consumer = self.consumers.get(consumer_id)
        return "" if consumer is None else str(consumer.subscription.topic.name)

    def close_producers(self, producer_id: int | None) -> None:
        """Close one producer, or all if given None, as if their topics were unloaded."""
        for producer in tuple(self.producers.values()):
            if producer_id in (None, producer.producer_id) and producer.topic is not None:
                producer.disconnect()

    def close_consumers(self, consumer_id: int | None) -> None:
        """Close one consumer, or all if given None, as if their topics were unloaded."""
        for consumer in tuple(self.consumers.values()):
            if consumer_id in (None, consumer.consumer_id):
                _close_consumer(consumer)

    def move_topic(self, topic: str, to: str | None) -> None:
        """Begin to release a topic's bundle, to the broker at the address ``to`` if given.

        A failure is logged.
        """
        self.requests.tasks.start(NO_REQUEST, partial(_move, self.parts, topic, to))

    def _end_producers(self) -> None:
        self.publishes.lost()
        for producer in tuple(self.producers.values()):
            producer.end()

    async def drain(self) -> None:
        """Stop reading requests, answer requests in flight, then close the connection."""
        self.take_no_more()
        await self.requests.tasks.finished()
        self.turn_writer.flush()
        self.close()


def _close_consumer(consumer: Consumer) -> None:
    consumer.close()
    consumer.subscription.remove_consumer(consumer)


async def _move(parts: BrokerParts, topic: str, to: str | None) -> None:
    try:
        name = TopicName.parse(topic)
        policies = await parts.store.policies(name.namespace)
        if policies is not None:
            await parts.ownership.release(bundle_of_topic(name, policies.bundles), to)
    except (InvalidNameError, RequestError, StoreError) as error:
        logger.warning("a fault could not move %s: %s", one_line(topic), error)


def _consumers_leave(cnx: ServerCnx) -> None:
    """Remove a lost connection's consumers and redeliver their unacknowledged messages."""
    consumers, cnx.consumers = cnx.consumers, {}
    cnx.parts.leaving.in_steps(_leave(consumers.values()))


def _leave(consumers: Iterable[Consumer]) -> Iterator[None]:
    for number, consumer in enumerate(consumers, 1):
        consumer.subscription.remove_consumer(consumer)
        if number % LEAVING_A_STEP == 0:
            yield
