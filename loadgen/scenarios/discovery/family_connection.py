"""One connection of a family's client: a Wire of real sockets, with its reader's speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb
from loadgen.clients.answer_parts import ending, first_names
from loadgen.clients.connection import ClientConnection, connect_frame, lookup_frame
from loadgen.clients.pacing import ReadBudget
from loadgen.clients.refusals import refusal_reason
from loadgen.clients.wires import BrokerAddress, ListAnswer
from loadgen.scenarios.discovery.frames import (
    close_watch_frame,
    list_frame,
    subscribe_frame,
    watch_frame,
)
from proto.errors import RemoteProtocolError

if TYPE_CHECKING:
    from loadgen.clients.answer_stream import Listing
    from loadgen.clients.answers import AnswerBody
    from loadgen.clients.context import ClientContext
    from loadgen.clients.wires import ListQuestion, WireEvents
    from loadgen.scenario import ClientPlan
    from loadgen.scenarios.discovery.scenario import Reader


class FamilyConnection(ClientConnection):
    """A connection. Its mutable state is the questions that it has asked.

    Args:
        plan: The client's; what is known of its namespace is known of its answers.
        reader: The client's way of reading.
        context: The task's.
        events: Told what happens, once :meth:`hand_over` was called.
        tunnel_to: The broker that a proxy is asked to pass everything on to.
    """

    def __init__(
        self,
        plan: ClientPlan,
        reader: Reader,
        context: ClientContext[Any],
        events: WireEvents,
        tunnel_to: BrokerAddress | None,
    ) -> None:
        super().__init__(plan, context)
        self._events = events
        self._questions: dict[int, ListQuestion] = {}
        self._handed_over = self._stalled = False
        target = None if tunnel_to is None else urlsplit(tunnel_to.url).netloc
        self._connect_frame = connect_frame(
            target, watches=True, authentication=context.authentication
        )
        if reader.rate_bytes_per_second:
            self._budget = ReadBudget(reader.rate_bytes_per_second, context.time.monotonic())

    def hand_over(self) -> None:
        """Tell the client that the connection stands, or that it did not stand for long."""
        if not self.usable:
            self._events.unreachable("the connection was closed after the handshake")
            return
        self._handed_over = True
        flags = self.features
        self._events.connected(
            self,
            watches=flags.supports_topic_watchers,
            reconciles=flags.supports_topic_watcher_reconcile,
        )

    def stall(self) -> None:
        """Read nothing until :meth:`go_on`."""
        self._stalled = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def go_on(self) -> None:
        """Read again."""
        self._stalled = False
        self._resume_reading()

    # -- see Wire -----------------------------------------------------------------------------

    def list_topics(self, request_id: int, question: ListQuestion) -> None:
        """Send GET_TOPICS_OF_NAMESPACE."""
        self._questions[request_id] = question
        self.send(list_frame(request_id, question))

    def look_up(self, request_id: int, topic: str) -> None:
        """Send LOOKUP."""
        self.send(lookup_frame(topic, request_id))

    def open_watch(
        self,
        request_id: int,
        watcher_id: int,
        namespace: str,
        pattern: str,
        topics_hash: str | None,
    ) -> None:
        """Send WATCH_TOPIC_LIST."""
        self.send(watch_frame(request_id, watcher_id, namespace, pattern, topics_hash))

    def close_watch(self, watcher_id: int) -> None:
        """Send WATCH_TOPIC_LIST_CLOSE."""
        self.send(close_watch_frame(watcher_id))

    def subscribe(self, request_id: int, consumer_id: int, topic: str, subscription: str) -> None:
        """Send SUBSCRIBE."""
        self.send(subscribe_frame(request_id, consumer_id, topic, subscription))

    def close(self) -> None:
        """Close the connection at once, and tell nobody."""
        self._handed_over = False
        super().close()

    # -- what arrives -------------------------------------------------------------------------

    def new_body(self, request_id: int) -> AnswerBody:
        """Return the place for a listing, by what was asked."""
        self._events.first_byte(request_id)
        question = self._questions.get(request_id)
        checker = self.context.checker
        if question is None:  # nobody asked, and nobody will verify it
            return checker.body(self.plan.namespace)
        return checker.body(self.plan.namespace, question.pattern, question.topics_hash)

    def listing_received(self, listing: Listing) -> None:
        """Pass on a listing."""
        question = self._questions.pop(listing.request_id, None)
        if question is None:
            return
        body = self.context.checker.submit(listing.body)
        try:
            names = first_names(body, question.names_wanted, question.names_matching)
            topics_hash, changed = ending(body)
        except DecodeError:
            raise RemoteProtocolError("an answer is no list of topics") from None
        answer = ListAnswer(body.size_bytes, topics_hash, changed, names, body)
        self._events.listed(listing.request_id, answer)

    def command_received(self, command: pb.BaseCommand) -> None:
        """Pass on any other answer."""
        events = self._events
        if command.type == pb.BaseCommand.LOOKUP_RESPONSE:
            self._looked_up(command.lookupTopicResponse)
        elif command.type == pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS:
            opened = command.watchTopicListSuccess
            events.watch_opened(opened.request_id, opened.topics_hash, len(opened.topic))
        elif command.type == pb.BaseCommand.WATCH_TOPIC_UPDATE:
            update = command.watchTopicUpdate
            changed = len(update.new_topics) + len(update.deleted_topics)
            events.watch_updated(update.watcher_id, update.topics_hash, changed)
        elif command.type == pb.BaseCommand.SUCCESS:
            events.subscribed(command.success.request_id)
        elif command.type == pb.BaseCommand.CLOSE_CONSUMER:
            events.consumer_closed(command.close_consumer.consumer_id)

    def _looked_up(self, response: pb.CommandLookupTopicResponse) -> None:
        if response.response == pb.CommandLookupTopicResponse.Failed:
            reason = refusal_reason(response.error, response.message)
            self._events.refused(response.request_id, response.error, reason)
        else:
            tls = self.context.scenario.speaks_tls
            url = response.brokerServiceUrlTls if tls else response.brokerServiceUrl
            broker = BrokerAddress(url, response.proxy_through_service_url)
            self._events.looked_up(response.request_id, broker)

    def _refused(self, error: pb.CommandError) -> None:
        if not self.handshake.done():
            super()._refused(error)
            return
        self._questions.pop(error.request_id, None)
        reason = refusal_reason(error.error, error.message)
        self._events.refused(error.request_id, error.error, reason)

    def bytes_received(self, nbytes: int) -> None:
        """Count bytes that were read."""
        if self.handshake.done():
            self.context.counters.bytes += nbytes

    def ended(self, reason: str) -> None:
        """Tell the client that it has lost the connection."""
        if self._handed_over:
            self._events.disconnected(reason)

    def _resume_reading(self) -> None:
        if not self._stalled:
            super()._resume_reading()
