"""The requests of one topic's consumer to its broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.exceptions import server_response_error
from client.messages.message_id import MessageId

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.connection.cnx import ClientCnx
    from limiter.clock import Clock


class TopicRequests:
    """Asks the broker, on the connection of the moment.

    Their errors are those of :meth:`client.connection.cnx.ClientCnx.request`, and those of the
    connection's absence.

    Args:
        consumer_id: The consumer's number.
        topic: Full name.
        connected: Returns the connection.
        clock: Where time comes from.
        cache_seconds: How old an answer about the consumer may be.
    """

    def __init__(
        self,
        consumer_id: int,
        topic: str,
        connected: Callable[[], ClientCnx],
        clock: Clock,
        cache_seconds: float,
    ) -> None:
        self._consumer_id = consumer_id
        self._topic = topic
        self._connected = connected
        self._clock = clock
        self._cache_seconds = cache_seconds
        self._stats: tuple[float, pb.CommandConsumerStatsResponse] | None = None

    async def seek(self, target: MessageId | int) -> None:
        """Set the subscription to a message, or to a time in ms since 1970."""

        def build(request_id: int) -> pb.BaseCommand:
            seek = pb.CommandSeek(consumer_id=self._consumer_id, request_id=request_id)
            if isinstance(target, MessageId):
                seek.message_id.CopyFrom(target.to_proto())
            else:
                seek.message_publish_time = target
            return pb.BaseCommand(type=pb.BaseCommand.SEEK, seek=seek)

        await self._connected().request(build)

    async def last_message_id(self) -> tuple[MessageId, MessageId | None]:
        """Return the topic's last message, and where the subscription is acknowledged up to.

        Of an empty topic it is (-1, -1).
        """

        def build(request_id: int) -> pb.BaseCommand:
            return pb.BaseCommand(
                type=pb.BaseCommand.GET_LAST_MESSAGE_ID,
                getLastMessageId=pb.CommandGetLastMessageId(
                    consumer_id=self._consumer_id, request_id=request_id
                ),
            )

        answer = (await self._connected().request(build)).getLastMessageIdResponse
        last = MessageId.from_proto(answer.last_message_id, self._topic)
        if not answer.HasField("consumer_mark_delete_position"):
            return last, None
        return last, MessageId.from_proto(answer.consumer_mark_delete_position, self._topic)

    async def stats(self) -> pb.CommandConsumerStatsResponse:
        """Return what the broker says of the consumer now."""

        def build(request_id: int) -> pb.BaseCommand:
            return pb.BaseCommand(
                type=pb.BaseCommand.CONSUMER_STATS,
                consumerStats=pb.CommandConsumerStats(
                    consumer_id=self._consumer_id, request_id=request_id
                ),
            )

        answer = (await self._connected().request(build)).consumerStatsResponse
        if answer.HasField("error_code"):
            raise server_response_error(answer.error_code, answer.error_message)
        self._stats = self._clock.now() + self._cache_seconds, answer
        return answer

    async def cached_stats(self) -> pb.CommandConsumerStatsResponse:
        """Return what the broker said of the consumer, not too long ago."""
        if self._stats is not None and self._clock.now() < self._stats[0]:
            return self._stats[1]
        return await self.stats()

    async def unsubscribe(self, *, force: bool) -> None:
        """Delete the subscription."""

        def build(request_id: int) -> pb.BaseCommand:
            unsubscribe = pb.CommandUnsubscribe(
                consumer_id=self._consumer_id, request_id=request_id, force=force
            )
            return pb.BaseCommand(type=pb.BaseCommand.UNSUBSCRIBE, unsubscribe=unsubscribe)

        await self._connected().request(build)
