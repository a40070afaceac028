"""Interceptors: a program's own code at the moments of a message's life.

They are called in the order in which they were given, in the event loop, and must not block. What
one of them raises is logged; message, memory and the other interceptors go on as if it had done
nothing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Generic, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from client.messages.message import Message
    from client.messages.message_id import MessageId
    from client.messages.outgoing import OutgoingMessage

logger = logging.getLogger(__name__)
ArgsT = TypeVarTuple("ArgsT")
ReturnT = TypeVar("ReturnT")


class ProducerInterceptor:
    """Looks at what a producer sends. Derive from it, and define what is needed."""

    def before_send(self, producer: object, message: OutgoingMessage) -> None:
        """Look at a message before anything is reserved for it; its parts may be changed.

        Args:
            producer: The ``Producer``.
            message: The encoded payload, properties, keys and so on.
        """

    def on_send_acknowledgement(
        self,
        producer: object,
        message: OutgoingMessage,
        message_id: MessageId | None,
        error: BaseException | None,
    ) -> None:
        """Learn that the broker has a message, or that it failed.

        Args:
            producer: The ``Producer``.
            message: The message as it was sent.
            message_id: Its id; None if it failed.
            error: Why it failed; None if it did not.
        """

    def on_close(self) -> None:
        """Learn that the producer is closed."""


class ConsumerInterceptor:
    """Looks at what a consumer gets and acknowledges. Derive from it, and define what is needed."""

    def before_consume(self, consumer: object, message: Message) -> Message | None:
        """Look at a message before the program gets it.

        Returns:
            The message that the program gets in its place; None for the same.
        """
        return None

    def on_acknowledge(
        self, consumer: object, message_id: MessageId, error: BaseException | None
    ) -> None:
        """Learn that a message was acknowledged, or that this failed with ``error``."""

    def on_acknowledge_cumulative(
        self, consumer: object, message_id: MessageId, error: BaseException | None
    ) -> None:
        """Learn that all messages up to one were acknowledged, or that this failed."""

    def on_negative_acks_send(self, consumer: object, message_ids: Sequence[MessageId]) -> None:
        """Learn that messages are asked for again, since the program could not handle them."""

    def on_ack_timeout_send(self, consumer: object, message_ids: Sequence[MessageId]) -> None:
        """Learn that messages are asked for again, since they were not acknowledged in time."""

    def on_close(self) -> None:
        """Learn that the consumer is closed."""


InterceptorT = TypeVar("InterceptorT", ProducerInterceptor, ConsumerInterceptor)


class _Interceptors(Generic[InterceptorT]):
    """The interceptors of one producer or consumer; what they raise goes into the log.

    Args:
        interceptors: Called in this order.
    """

    def __init__(self, interceptors: Iterable[InterceptorT]) -> None:
        self._interceptors: tuple[InterceptorT, ...] = tuple(interceptors)

    def __bool__(self) -> bool:
        return bool(self._interceptors)

    def on_close(self) -> None:
        """Tell each that the producer or consumer is closed."""
        for one in self._interceptors:
            _call(one.on_close)


class ProducerInterceptors(_Interceptors[ProducerInterceptor]):
    """The interceptors of one producer."""

    def before_send(self, producer: object, message: OutgoingMessage) -> None:
        """Let each look at a message, and change it."""
        for one in self._interceptors:
            _call(one.before_send, producer, message)

    def on_send_acknowledgement(
        self,
        producer: object,
        message: OutgoingMessage,
        message_id: MessageId | None,
        error: BaseException | None,
    ) -> None:
        """Tell each that the broker has a message, or that it failed."""
        for one in self._interceptors:
            _call(one.on_send_acknowledgement, producer, message, message_id, error)


class ConsumerInterceptors(_Interceptors[ConsumerInterceptor]):
    """The interceptors of one consumer."""

    def before_consume(self, consumer: object, message: Message) -> Message:
        """Return the message that the program gets, after each has looked at it."""
        for one in self._interceptors:
            replaced = _call(one.before_consume, consumer, message)
            message = replaced or message
        return message

    def on_acknowledge(
        self, consumer: object, message_id: MessageId, error: BaseException | None = None
    ) -> None:
        """Tell each of an acknowledgement."""
        for one in self._interceptors:
            _call(one.on_acknowledge, consumer, message_id, error)

    def on_acknowledge_cumulative(
        self, consumer: object, message_id: MessageId, error: BaseException | None = None
    ) -> None:
        """Tell each of a cumulative acknowledgement."""
        for one in self._interceptors:
            _call(one.on_acknowledge_cumulative, consumer, message_id, error)

    def on_negative_acks_send(self, consumer: object, message_ids: Sequence[MessageId]) -> None:
        """Tell each what is asked for again after negative acknowledgements."""
        for one in self._interceptors:
            _call(one.on_negative_acks_send, consumer, message_ids)

    def on_ack_timeout_send(self, consumer: object, message_ids: Sequence[MessageId]) -> None:
        """Tell each what is asked for again since its time was up."""
        for one in self._interceptors:
            _call(one.on_ack_timeout_send, consumer, message_ids)


def _call(method: Callable[[*ArgsT], ReturnT], *args: *ArgsT) -> ReturnT | None:
    try:
        return method(*args)
    except Exception:
        logger.exception("an interceptor failed, and is passed over: %s", method)
        return None
