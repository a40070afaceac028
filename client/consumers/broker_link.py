"""The commands that one topic's consumer sends to its broker."""

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
"""Maximum number of permits in one FLOW command, which brokers read as a signed number."""


class BrokerLink:
    """The commands and requests that a consumer sends to its broker.

    Without a connection, commands are dropped; requests wait for the next connection, for the
    operation timeout at most. Requests raise the errors of
    :meth:`client.connection.cnx.ClientCnx.request` and of :meth:`patiently`.

    Args:
        context: State that the client shares with all its producers and consumers.
        topic: Full name of the topic.
        alone: Whether the subscription has only one active consumer; a redelivery then includes all
            unacknowledged messages.
        cache_seconds: Maximum age of cached consumer statistics, in seconds.

    Attributes:
        topic, alone: As given.
        consumer_id: The consumer's number within the client.
        persistent: Whether the topic is persistent; non-persistent topics have neither
            acknowledgements nor redelivery.
        cnx: The connection to the broker, or None.
        attached: Event that is set while requests can be sent, and after the consumer has ended for
            good.
        ended: The error with which the consumer ended for good, or None.
        epoch: Number of requested redeliveries of all unacknowledged messages.
        redelivery_requests: Number of requested redeliveries, of all unacknowledged messages or of
            single entries.
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
        """Raise an error if the consumer was closed or has failed.

        Raises:
            AlreadyClosed: The consumer is closed.
            PulsarException: Why the consumer failed.
        """
        if self.ended is not None:
            raise self.ended

    async def patiently(
        self,
        ask: Callable[[], Awaitable[T]],
        may_pass: Callable[[PulsarException], bool] = blip,
    ) -> T:
        """Send a request once the consumer is attached; repeat it after a lost connection.

        Args:
            ask: Function that sends the request.
            may_pass: Function that returns True for an error after which to retry.

        Raises:
            Timeout: No attempt succeeded within the operation timeout.
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

    # -- commands without an answer -----------------------------------------------------------

    def _tell(self, command: pb.BaseCommand) -> None:
        if self.cnx is not None:
            self.cnx.turn_writer.add(encode_command(command))

    def grant(self, permits: int) -> None:
        """Permit the broker to send ``permits`` further messages (FLOW)."""
        flow = pb.CommandFlow(consumer_id=self.consumer_id)
        while permits > 0:
            flow.messagePermits = min(permits, _MOST_PERMITS)
            self._tell(pb.BaseCommand(type=pb.BaseCommand.FLOW, flow=flow))
            permits -= flow.messagePermits

    def acknowledge(self, ack: pb.CommandAck) -> None:
        """Send an acknowledgement without requesting a receipt."""
        if self.persistent:
            self._tell(pb.BaseCommand(type=pb.BaseCommand.ACK, ack=ack))

    def redeliver(self, entries: Sequence[Place]) -> None:
        """Request the redelivery of the given entries."""
        for start in range(0, len(entries), _MOST_REDELIVERED):
            command = pb.CommandRedeliverUnacknowledgedMessages(consumer_id=self.consumer_id)
            for ledger_id, entry_id in entries[start : start + _MOST_REDELIVERED]:
                command.message_ids.add(ledgerId=ledger_id, entryId=entry_id)
            self._redeliver(command)

    def redeliver_all(self) -> None:
        """Request the redelivery of all messages that this consumer has not acknowledged."""
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

    # -- requests -----------------------------------------------------------------------------

    async def _ask(
        self,
        kind: pb.BaseCommand.Type.ValueType,
        **named: Any,  # noqa: ANN401 - one of many commands
    ) -> pb.BaseCommand:
        """Send a request named by its field in BaseCommand, and return the response."""
        return await self.patiently(lambda: self._ask_once(self.cnx, kind, **named))

    async def _ask_once(
        self,
        cnx: ClientCnx | None,
        kind: pb.BaseCommand.Type.ValueType,
        **named: Any,  # noqa: ANN401 - as above
    ) -> pb.BaseCommand:
        if cnx is None:
            raise NotConnected(f"{self.topic} is not connected now; the request is retried")
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
            # The broker closed the consumer before the request arrived.
            raise NotConnected(f"{self.topic} was closed before the request was sent") from error

    async def request_acknowledgement(self, ack: pb.CommandAck) -> None:
        """Send an acknowledgement, and wait for its receipt; a closing consumer may do so, too."""
        answer = (await self._ask_once(self.cnx, pb.BaseCommand.ACK, ack=ack)).ackResponse
        if answer.HasField("error"):
            raise server_response_error(answer.error, answer.message)

    async def seek(self, target: MessageId | int, cnx: ClientCnx | None) -> None:
        """Move the subscription to a message, or to a time in ms since 1970; do not retry.

        Raises:
            NotConnected: No connection.
        """
        seek = pb.CommandSeek()
        if isinstance(target, MessageId):
            seek.message_id.CopyFrom(target.to_proto())
        else:
            seek.message_publish_time = target
        await self._ask_once(cnx, pb.BaseCommand.SEEK, seek=seek)

    async def last_message_id(self) -> tuple[MessageId, MessageId | None]:
        """Return the id of the topic's last message, and the subscription's acknowledged position.

        The acknowledged position is None if the broker does not report it. The last message of an
        empty topic is (-1, -1).
        """
        kind, question = pb.BaseCommand.GET_LAST_MESSAGE_ID, pb.CommandGetLastMessageId()
        # Without storage a topic has no last message: retrying is futile.
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
        """Request the broker's statistics of this consumer."""
        kind, question = pb.BaseCommand.CONSUMER_STATS, pb.CommandConsumerStats()
        answer = await self._ask(kind, consumerStats=question)
        found = answer.consumerStatsResponse
        if found.HasField("error_code"):
            raise server_response_error(found.error_code, found.error_message)
        self._stats = self._context.clock.now() + self._cache_seconds, found
        return found

    async def cached_stats(self) -> pb.CommandConsumerStatsResponse:
        """Return the broker's statistics of this consumer, cached for ``cache_seconds``."""
        if self._stats is not None and self._context.clock.now() < self._stats[0]:
            return self._stats[1]
        return await self.stats()

    async def unsubscribe(self, *, force: bool) -> None:
        """Delete the subscription at the broker."""
        command = pb.CommandUnsubscribe(force=force)
        await self._ask(pb.BaseCommand.UNSUBSCRIBE, unsubscribe=command)
