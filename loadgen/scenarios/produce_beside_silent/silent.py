"""Clients that read nothing: one that publishes, and one that subscribes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.scenarios.produce_beside_silent.messages import (
    Opening,
    flow_frame,
    producer_frame,
    send_frame,
    subscribe_frame,
)
from loadgen.stuck_peers.peer import StuckPeer

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb
    from loadgen.clients.context import ClientContext
    from loadgen.scenario import ClientPlan
    from loadgen.scenarios.produce_beside_silent.scenario import SilentScenario
    from loadgen.stuck_peers.close_watch import CloseWatch

_MESSAGES_A_WRITE = 50


class SilentPeer(StuckPeer):
    """One connection. Its mutable state is its record."""

    def __init__(
        self,
        plan: ClientPlan,
        context: ClientContext[SilentScenario],
        close_watch: CloseWatch,
        opening: Opening,
    ) -> None:
        super().__init__(plan, context, close_watch)
        self._opening = opening

    async def connected(self) -> None:
        """Open the producer or the consumer, then stop reading."""
        reason = await self._opening.open(self)
        if reason is not None:
            self.unreachable(reason)
            self.close()
        else:
            await super().connected()

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
        super().ended(reason)


class SilentProducer(SilentPeer):
    """Publishes as fast as the server takes it; its record says since when it takes no more."""

    def __init__(
        self, plan: ClientPlan, context: ClientContext[SilentScenario], close_watch: CloseWatch
    ) -> None:
        topic = f"persistent://{plan.namespace.name}/silent-{plan.client}"
        super().__init__(plan, context, close_watch, Opening(topic, producer_frame(topic)))
        self._payload = bytes(context.scenario.message_bytes)
        self._due = False

    def pause_writing(self) -> None:
        """Wait: what was written is not taken."""
        self.record.held_up_seconds = self.context.time.seconds()

    def resume_writing(self) -> None:
        """Go on, unless it has left."""
        if self.record.end is None:
            self.record.held_up_seconds = None
            self.ask()

    def ask(self) -> None:
        """Publish at the loop's next turn."""
        if not self._due:
            self._due = True
            self.context.clock.call_at(self.context.clock.now(), self._publish)

    def _publish(self) -> None:
        self._due = False
        sent = self.record.sent
        last = min(sent + _MESSAGES_A_WRITE, self.context.scenario.silent_messages)
        if self.record.held_up_seconds is not None or not self.usable or last == sent:
            return
        self.send(b"".join(send_frame(one, self._payload) for one in range(sent, last)))
        self.record.sent = last
        self.ask()


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

    def ask(self) -> None:
        """Give room for everything."""
        self.send(flow_frame())
