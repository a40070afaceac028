"""The commands of one topic's consumer to its broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import proto.PulsarApi_pb2 as pb
from client.exceptions import NotConnected, PulsarException, server_response_error
from client.messages.message_id import MessageId
from proto.frames import encode_command

if TYPE_CHECKING:
    from collections.abc import Sequence

    from client.connection.cnx import ClientCnx
    from client.messages.message_id import Place
    from limiter.clock import Clock

_MOST_REDELIVERED = 1_000
_MOST_PERMITS = 2**31 - 1
"""Permits of one FLOW: brokers read a signed number."""


class BrokerLink:
    """Tells the broker, and asks it, on the connection of the moment.

    What is told while there is none is dropped. The errors of what is asked are those of
    :meth:`client.connection.cnx.ClientCnx.request`, and those of :meth:`connected`.

    Args:
        topic: Full name.
        consumer_id: The consumer's number.
        clock: Where time comes from.
        alone: Whether the subscription sends to one consumer only: then everything is sent again,
            or nothing.
        cache_seconds: How old an answer about the consumer may be.

    Attributes:
        topic, consumer_id, alone: As given.
        persistent: Whether the topic is; others know neither acknowledgements nor redelivery.
        cnx: The connection; None while there is none.
        ended: Why there will be none any more; None while there may be one.
        epoch: Times that everything was asked for again.
        redelivery_requests: Times that anything was.
    """

    def __init__(
        self, topic: str, consumer_id: int, clock: Clock, *, alone: bool, cache_seconds: float
    ) -> None:
        self.topic = topic
        self.consumer_id = consumer_id
        self.alone = alone
        self.persistent = not topic.startswith("non-persistent://")
        self.cnx: ClientCnx | None = None
        self.ended: PulsarException | None = None
        self.epoch = 0
        self.redelivery_requests = 0
        self._clock = clock
        self._cache_seconds = cache_seconds
        self._stats: tuple[float, pb.CommandConsumerStatsResponse] | None = None

    def check_open(self) -> None:
        """Refuse what a closed consumer cannot do.

        Raises:
            AlreadyClosed: It is closed.
            PulsarException: Why it failed.
        """
        if self.ended is not None:
            raise self.ended

    def connected(self) -> ClientCnx:
        """Return the connection.

        Raises:
            NotConnected: There is none now.
            PulsarException: See ``check_open``.
        """
        self.check_open()
        if self.cnx is None:
            raise NotConnected(f"{self.topic} is not connected now; it is tried again")
        return self.cnx

    # -- what is told -------------------------------------------------------------------------

    def _tell(self, command: pb.BaseCommand) -> None:
        if self.cnx is not None:
            self.cnx.turn_writer.add(encode_command(command))

    def grant(self, permits: int) -> None:
        """Allow the broker to send so many messages more."""
        flow = pb.CommandFlow(consumer_id=self.consumer_id)
        while permits > 0:
            flow.messagePermits = min(permits, _MOST_PERMITS)
            self._tell(pb.BaseCommand(type=pb.BaseCommand.FLOW, flow=flow))
            permits -= flow.messagePermits

    def acknowledge(self, ack: pb.CommandAck) -> None:
        """Acknowledge, without an answer."""
        if self.persistent:
            self._tell(pb.BaseCommand(type=pb.BaseCommand.ACK, ack=ack))

    def redeliver(self, entries: Sequence[Place]) -> None:
        """Have entries sent again."""
        for start in range(0, len(entries), _MOST_REDELIVERED):
            command = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=self.consumer_id)
            for ledger_id, entry_id in entries[start : start + _MOST_REDELIVERED]:
                command.message_ids.add(ledgerId=ledger_id, entryId=entry_id)
            self._redeliver(command)

    def redeliver_all(self) -> None:
        """Have everything sent again that was not acknowledged."""
        command = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=self.consumer_id)
        if self.alone:
            self.epoch += 1
            command.consumer_epoch = self.epoch
        self._redeliver(command)

    def _redeliver(self, command: pb.CommandRedeliverUnacknowledgedMessages) -> None:
        self.redelivery_requests += 1
        self._tell(
            pb.BaseCommand(
                type=pb.BaseCommand.REDELIVER_UNACKNOWLEDGED_MESSAGES,
                redeliverUnacknowledgedMessages=command,
            )
        )

    # -- what is asked ------------------------------------------------------------------------

    async def _ask(
        self,
        cnx: ClientCnx,
        kind: pb.BaseCommand.Type.ValueType,
        **named: Any,  # noqa: ANN401 - one of many commands
    ) -> pb.BaseCommand:
        """Return the answer to a command, which is given under its name in BaseCommand."""
        (command,) = named.values()

        def build(request_id: int) -> pb.BaseCommand:
            command.consumer_id, command.request_id = self.consumer_id, request_id
            return pb.BaseCommand(type=kind, **named)

        return await cnx.request(build)

    async def request_acknowledgement(self, ack: pb.CommandAck) -> None:
        """Acknowledge, and wait for the answer; also for a consumer that is closing."""
        if self.cnx is None:
            raise NotConnected(f"{self.topic} is not connected now")
        answer = (await self._ask(self.cnx, pb.BaseCommand.ACK, ack=ack)).ackResponse
        if answer.HasField("error"):
            raise server_response_error(answer.error, answer.message)

    async def seek(self, target: MessageId | int, cnx: ClientCnx | None = None) -> None:
        """Set the subscription to a message, or to a time in ms since 1970.

        Args:
            target: Where to.
            cnx: The connection, while it is not attached yet.
        """
        seek = pb.CommandSeek()
        if isinstance(target, MessageId):
            seek.message_id.CopyFrom(target.to_proto())
        else:
            seek.message_publish_time = target
        await self._ask(cnx or self.connected(), pb.BaseCommand.SEEK, seek=seek)

    async def last_message_id(self) -> tuple[MessageId, MessageId | None]:
        """Return the topic's last message, and where the subscription is acknowledged up to.

        Of an empty topic it is (-1, -1).
        """
        kind, question = pb.BaseCommand.GET_LAST_MESSAGE_ID, pb.CommandGetLastMessageId()
        answer = await self._ask(self.connected(), kind, getLastMessageId=question)
        found = answer.getLastMessageIdResponse
        last = MessageId.from_proto(found.last_message_id, self.topic)
        if not found.HasField("consumer_mark_delete_position"):
            return last, None
        return last, MessageId.from_proto(found.consumer_mark_delete_position, self.topic)

    async def stats(self) -> pb.CommandConsumerStatsResponse:
        """Return what the broker says of the consumer now."""
        kind, question = pb.BaseCommand.CONSUMER_STATS, pb.CommandConsumerStats()
        answer = await self._ask(self.connected(), kind, consumerStats=question)
        found = answer.consumerStatsResponse
        if found.HasField("error_code"):
            raise server_response_error(found.error_code, found.error_message)
        self._stats = self._clock.now() + self._cache_seconds, found
        return found

    async def cached_stats(self) -> pb.CommandConsumerStatsResponse:
        """Return what the broker said of the consumer, not too long ago."""
        if self._stats is not None and self._clock.now() < self._stats[0]:
            return self._stats[1]
        return await self.stats()

    async def unsubscribe(self, *, force: bool) -> None:
        """Delete the subscription."""
        command = pb.CommandUnsubscribe(force=force)
        await self._ask(self.connected(), pb.BaseCommand.UNSUBSCRIBE, unsubscribe=command)
