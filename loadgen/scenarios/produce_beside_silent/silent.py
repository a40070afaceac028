"""Clients that read nothing: one that publishes, and one that subscribes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limiter.clock import deadline
from loadgen.clients.connect import CONNECT_TIMEOUT_SECONDS
from loadgen.clients.connection import ClientConnection
from loadgen.scenarios.produce_beside_silent.messages import (
    Opening,
    flow_frame,
    lookup_frame,
    producer_frame,
    send_frame,
    subscribe_frame,
)
from loadgen.scenarios.stuck.summary import PeerEnd, PeerRecord

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb
    from loadgen.clients.context import ClientContext
    from loadgen.scenario import ClientPlan
    from loadgen.scenarios.produce_beside_silent.scenario import SilentScenario
    from loadgen.scenarios.stuck.close_watch import CloseWatch

_MESSAGES_A_WRITE = 50


class SilentPeer(ClientConnection):
    """One connection. Its mutable state is its record.

    Attributes:
        sent: Messages that it has published.
    """

    def __init__(
        self,
        plan: ClientPlan,
        context: ClientContext[SilentScenario],
        close_watch: CloseWatch,
        opening: Opening,
    ) -> None:
        super().__init__(plan, context)
        self.record = PeerRecord(plan.client, plan.namespace.name)
        self.sent = 0
        self._close_watch = close_watch
        self._opening = opening
        self._descriptor: int | None = None

    @property
    def held_up(self) -> bool:
        """True if the server takes no more from it."""
        return False

    async def open(self) -> None:
        """Open the producer or the consumer, then stop reading."""
        self.send(lookup_frame(self._opening.topic))
        try:
            async with deadline(self.context.clock, CONNECT_TIMEOUT_SECONDS):
                reason = await self._opening.done
        except TimeoutError:
            reason = f"no answer within {CONNECT_TIMEOUT_SECONDS:g} s"
        if reason:
            self.unreachable(reason)
            self.close()
        elif self.usable and self._transport is not None:
            self._transport.pause_reading()
            connection = self._transport.get_extra_info("socket")
            self._descriptor = self._close_watch.watch(connection, self._server_closed)

    def unreachable(self, reason: str) -> None:
        """Record that it could not begin."""
        self.record.end, self.record.reason = PeerEnd.UNREACHABLE, reason

    def begin(self) -> None:
        """Begin to be sent what it will not read."""
        if self.usable and self.record.end is None:
            self.record.asked_seconds = self.context.time.seconds()
            self._begin()

    def _begin(self) -> None:
        """Do what makes the server send."""

    def leave(self) -> None:
        """Close the connection."""
        self._end(PeerEnd.LEFT)
        self._closed = True
        self.close()

    def command_received(self, command: pb.BaseCommand) -> None:
        """Go on with the opening."""
        frame = self._opening.next_frame(command)
        if frame is not None:
            self.send(frame)

    def refusal_received(self, request_id: int, reason: str) -> None:
        """Take a refusal."""
        del request_id
        self._opening.end(reason)

    def ended(self, reason: str) -> None:
        """Take note that the server has closed the connection."""
        self._opening.end(reason)
        self._end(PeerEnd.CLOSED)

    def _server_closed(self) -> None:
        self._descriptor = None
        self._over(str(PeerEnd.CLOSED))
        self.close()

    def _end(self, end: PeerEnd) -> None:
        if self._descriptor is not None:
            self._close_watch.forget(self._descriptor)
            self._descriptor = None
        if self.record.end is None:
            self.record.end, self.record.gone_seconds = end, self.context.time.seconds()


class SilentProducer(SilentPeer):
    """Publishes as fast as the server takes it; mutable state: whether the server takes more."""

    def __init__(
        self, plan: ClientPlan, context: ClientContext[SilentScenario], close_watch: CloseWatch
    ) -> None:
        topic = f"persistent://{plan.namespace.name}/silent-{plan.client}"
        super().__init__(plan, context, close_watch, Opening(topic, producer_frame(topic)))
        self._payload = bytes(context.scenario.message_bytes)
        self._taken = True
        self._due = False

    @property
    def held_up(self) -> bool:
        """True if the server takes no more from it."""
        return not self._taken

    def pause_writing(self) -> None:
        """Wait: what was written is not taken."""
        self._taken = False

    def resume_writing(self) -> None:
        """Go on."""
        self._taken = True
        if self.record.asked_seconds is not None:
            self._begin()

    def _begin(self) -> None:
        if not self._due:
            self._due = True
            self.context.clock.call_at(self.context.clock.now(), self._publish)

    def _publish(self) -> None:
        self._due = False
        last = min(self.sent + _MESSAGES_A_WRITE, self.context.scenario.silent_messages)
        if not self._taken or not self.usable or last == self.sent:
            return
        self.send(b"".join(send_frame(one, self._payload) for one in range(self.sent, last)))
        self.sent = last
        self._begin()


class SilentConsumer(SilentPeer):
    """Subscribes to a healthy producer's topic, and has room for everything."""

    def __init__(
        self,
        plan: ClientPlan,
        context: ClientContext[SilentScenario],
        close_watch: CloseWatch,
        topic: str,
    ) -> None:
        wanted = subscribe_frame(topic, f"silent-{plan.client}")
        super().__init__(plan, context, close_watch, Opening(topic, wanted))

    def _begin(self) -> None:
        self.send(flow_frame())
