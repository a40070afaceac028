"""Interceptors, which are an application's callbacks for its messages.

Interceptors are called in the given order, on the event loop, and must not block. Exceptions are
logged, and otherwise have no effect.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Generic, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from client.messages.message import Message
    from client.messages.message_id import MessageId
    from client.messages.outgoing import OutgoingMessage

logger = logging.getLogger(__name__)
ArgsT = TypeVarTuple("ArgsT")
ReturnT = TypeVar("ReturnT")


class ProducerInterceptor:
    """Callbacks of a producer; derive a class, and override the relevant methods."""

    def before_send(self, producer: object, message: OutgoingMessage) -> None:
        """Inspect or change a message before it gets a queue slot and memory.

        Args:
            producer: The ``Producer``.
            message: The message with its encoded payload, properties, keys and so on.
        """

    def on_send_acknowledgement(
        self,
        producer: object,
        message: OutgoingMessage,
        message_id: MessageId | None,
        error: BaseException | None,
    ) -> None:
        """React to the broker's receipt for a message, or to the message's failure.

        Args:
            producer: The ``Producer``.
            message: The message as sent.
            message_id: The message's id; None after a failure.
            error: Why the message failed; None after a receipt.
        """

    def on_close(self) -> None:
        """React to the closing of the producer."""


class ConsumerInterceptor:
    """Callbacks of a consumer; derive a class, and override the relevant methods."""

    def before_consume(self, consumer: object, message: Message[Any]) -> Message[Any] | None:
        """Inspect or replace a message before the application receives it.

        Returns:
            A replacement for the message; None for no change.
        """
        return None

    def on_acknowledge(
        self, consumer: object, message_id: MessageId, error: BaseException | None
    ) -> None:
        """React to the acknowledgement of a message, or to its failure with ``error``."""

    def on_acknowledge_cumulative(
        self, consumer: object, message_id: MessageId, error: BaseException | None
    ) -> None:
        """React to a cumulative acknowledgement, or to its failure with ``error``."""

    def on_negative_acks_send(self, consumer: object, message_ids: Sequence[MessageId]) -> None:
        """React to messages that will be redelivered after negative acknowledgements."""

    def on_ack_timeout_send(self, consumer: object, message_ids: Sequence[MessageId]) -> None:
        """React to messages that will be redelivered after their ack timeout."""

    def on_close(self) -> None:
        """React to the closing of the consumer."""


InterceptorT = TypeVar("InterceptorT", ProducerInterceptor, ConsumerInterceptor)


class _Several(Generic[InterceptorT]):
    """All interceptors of a producer or consumer, called in order; exceptions are logged.

    Args:
        interceptors: The interceptors in the order of their calls.
    """

    def __init__(self, interceptors: Iterable[InterceptorT]) -> None:
        self._interceptors: tuple[InterceptorT, ...] = tuple(interceptors)

    def __init_subclass__(cls, kind: type) -> None:
        for name in vars(kind):
            if not name.startswith("_") and name not in vars(cls):
                setattr(cls, name, _telling_each(name))

    def __bool__(self) -> bool:
        return bool(self._interceptors)


def _telling_each(name: str) -> Callable[..., None]:
    def tell(several: _Several[InterceptorT], *args: object) -> None:
        for one in several._interceptors:
            _call(getattr(one, name), *args)

    return tell


class ProducerInterceptors(
    _Several[ProducerInterceptor], ProducerInterceptor, kind=ProducerInterceptor
):
    """All interceptors of a producer, called as if they were one."""


class ConsumerInterceptors(
    _Several[ConsumerInterceptor], ConsumerInterceptor, kind=ConsumerInterceptor
):
    """All interceptors of a consumer, called as if they were one."""

    def before_consume(self, consumer: object, message: Message[Any]) -> Message[Any]:
        """Return the message for the application, after each interceptor may have replaced it."""
        for one in self._interceptors:
            replaced = _call(one.before_consume, consumer, message)
            message = replaced or message
        return message


def _call(method: Callable[[*ArgsT], ReturnT], *args: *ArgsT) -> ReturnT | None:
    try:
        return method(*args)
    except Exception:
        logger.exception("an interceptor failed, and is passed over: %s", method)
        return None
