"""The commands of one topic's consumer to its broker."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import proto.PulsarApi_pb2 as pb
from client.exceptions import (
    NotConnected,
    PulsarException,
    ServerResponseError,
    server_response_error,
)
from client.messages.message_id import MessageId
from client.patience import blip, of_server
from proto.frames import encode_command

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from client.connection.cnx import ClientCnx
    from client.context import ClientContext
    from client.messages.message_id import Place

T = TypeVar("T")

_MOST_REDELIVERED = 1_000
_MOST_PERMITS = 2**31 - 1
"""Permits of one FLOW: brokers read a signed number."""


class BrokerLink:
    """Tells the broker, and asks it, on the connection of the moment.

    What is told while there is none is dropped. What is asked waits for the next, for the operation
    timeout at most; its errors are those of :meth:`client.connection.cnx.ClientCnx.request`, and
    those of :meth:`patiently`.

    Args:
        context: The client's.
        topic: Full name.
        alone: Whether the subscription sends to one consumer only: then everything is sent again,
            or nothing.
        cache_seconds: How old an answer about the consumer may be.

    Attributes:
        topic, alone: As given.
        consumer_id: The consumer's number among the client's.
        persistent: Whether the topic is; others know neither acknowledgements nor redelivery.
        cnx: The connection; None while there is none.
        attached: Set while there is one that may be asked, or when there will be none any more.
        ended: Why there will be none any more; None while there may be one.
        epoch: Times that everything was asked for again.
        redelivery_requests: Times that anything was.
    """

    def __init__(
        self, context: ClientContext, topic: str, *, alone: bool, cache_seconds: float
    ) -> None:
        self._context = context
        self.topic = topic
        self.consumer_id = next(context.consumer_ids)
        self.alone = alone
        self.persistent = not topic.startswith("non-persistent://")
        self.cnx: ClientCnx | None = None
        self.attached = asyncio.Event()
        self.ended: PulsarException | None = None
        self.epoch = 0
        self.redelivery_requests = 0
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

    async def patiently(
        self,
        ask: Callable[[], Awaitable[T]],
        may_pass: Callable[[PulsarException], bool] = blip,
    ) -> T:
        """Return what ``ask`` returns; call it when attached, and again if that is lost meanwhile.

        Args:
            ask: Asks.
            may_pass: Errors after which it is called again.

        Raises:
            Timeout: It was not attached, or not long enough, for the operation timeout.
            PulsarException: The broker refused; or see ``check_open``.
        """

        async def attempt() -> T:
            await self.attached.wait()
            self.check_open()
            return await ask()

        self.check_open()
        return await self._context.cluster.patience.until(
            attempt,
            f"the broker of {self.topic} did not answer",
            self._context.operation_timeout_seconds,
            may_pass,
        )

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
        kind: pb.BaseCommand.Type.ValueType,
        **named: Any,  # noqa: ANN401 - one of many commands
    ) -> pb.BaseCommand:
        """Return the answer to a command, which is given under its name in BaseCommand."""
        return await self.patiently(lambda: self._ask_once(self.cnx, kind, **named))

    async def _ask_once(
        self,
        cnx: ClientCnx | None,
        kind: pb.BaseCommand.Type.ValueType,
        **named: Any,  # noqa: ANN401 - as above
    ) -> pb.BaseCommand:
        if cnx is None:
            raise NotConnected(f"{self.topic} is not connected now; it is tried again")
        (command,) = named.values()

        def build(request_id: int) -> pb.BaseCommand:
            command.consumer_id, command.request_id = self.consumer_id, request_id
            return pb.BaseCommand(type=kind, **named)

        try:
            return await cnx.request(build)
        except ServerResponseError as error:
            if self.consumer_id in cnx.attached.consumers:
                raise
            self.check_open()
            # The broker closed the consumer before the question came, and knows it no more.
            raise NotConnected(f"{self.topic} was closed before it could be asked") from error

    async def request_acknowledgement(self, ack: pb.CommandAck) -> None:
        """Acknowledge, and wait for the answer; also for a consumer that is closing."""
        answer = (await self._ask_once(self.cnx, pb.BaseCommand.ACK, ack=ack)).ackResponse
        if answer.HasField("error"):
            raise server_response_error(answer.error, answer.message)

    async def seek(self, target: MessageId | int, cnx: ClientCnx | None) -> None:
        """Set the subscription to a message, or to a time in ms since 1970; not patiently.

        Raises:
            NotConnected: There is no connection.
        """
        seek = pb.CommandSeek()
        if isinstance(target, MessageId):
            seek.message_id.CopyFrom(target.to_proto())
        else:
            seek.message_publish_time = target
        await self._ask_once(cnx, pb.BaseCommand.SEEK, seek=seek)

    async def last_message_id(self) -> tuple[MessageId, MessageId | None]:
        """Return the topic's last message, and where the subscription is acknowledged up to.

        Of an empty topic it is (-1, -1).
        """
        kind, question = pb.BaseCommand.GET_LAST_MESSAGE_ID, pb.CommandGetLastMessageId()
        # A topic that stores nothing has no last message, however often it is asked.
        answer = await self.patiently(
            lambda: self._ask_once(self.cnx, kind, getLastMessageId=question),
            of_server if self.persistent else blip,
        )
        found = answer.getLastMessageIdResponse
        last = MessageId.from_proto(found.last_message_id, self.topic)
        if not found.HasField("consumer_mark_delete_position"):
            return last, None
        return last, MessageId.from_proto(found.consumer_mark_delete_position, self.topic)

    async def stats(self) -> pb.CommandConsumerStatsResponse:
        """Return what the broker says of the consumer now."""
        kind, question = pb.BaseCommand.CONSUMER_STATS, pb.CommandConsumerStats()
        answer = await self._ask(kind, consumerStats=question)
        found = answer.consumerStatsResponse
        if found.HasField("error_code"):
            raise server_response_error(found.error_code, found.error_message)
        self._stats = self._context.clock.now() + self._cache_seconds, found
        return found

    async def cached_stats(self) -> pb.CommandConsumerStatsResponse:
        """Return what the broker said of the consumer, not too long ago."""
        if self._stats is not None and self._context.clock.now() < self._stats[0]:
            return self._stats[1]
        return await self.stats()

    async def unsubscribe(self, *, force: bool) -> None:
        """Delete the subscription."""
        command = pb.CommandUnsubscribe(force=force)
        await self._ask(pb.BaseCommand.UNSUBSCRIBE, unsubscribe=command)
