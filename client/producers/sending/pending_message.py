"""A message that the application sends and that has no receipt from the broker yet."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

from client.messages.outgoing import OutgoingMessage
from limiter.errors import raised_anew

if TYPE_CHECKING:
    from client.messages.chunked_message import Chunks
    from client.messages.message_id import MessageId
    from client.schema.schema import Schema
    from limiter.client_memory.reservation import Reservation
    from limiter.clock import Clock

ONLY_HERE = "__local__"
"""Name that upstream uses as the only target cluster of messages that are not replicated."""
BYTES_AS_TEXT = "surrogateescape"
"""Error handler that lets ordering keys hold bytes that are not UTF-8 as text."""
_MILLISECOND = timedelta(milliseconds=1)


class MessageArguments:
    """A converter of the arguments of ``Producer.send`` into messages.

    Args:
        schema: Schema that encodes the values; with None, values are bytes.
        clock: The base of ``deliver_after``.
    """

    def __init__(self, schema: Schema[Any] | None, clock: Clock) -> None:
        self._schema = schema
        self._clock = clock

    def message(  # noqa: PLR0913 - a message has many fields
        self,
        content: Any,  # noqa: ANN401 - depends on the schema
        properties: Mapping[str, str] | None,
        partition_key: str | None,
        ordering_key: str | None,
        sequence_id: int | None,
        replication_clusters: Sequence[str] | None,
        disable_replication: bool | None,
        event_timestamp: int | None,
        deliver_at: int | None,
        deliver_after: timedelta | None,
        *,
        waits: bool,
    ) -> PendingMessage:
        """Create a message from the arguments of ``send``, without submitting it.

        Raises:
            TypeError: An argument has the wrong type.
            ValueError: A number is out of range, or a text is not UTF-8.
            Exception: The schema rejects the content.
        """
        result = asyncio.get_running_loop().create_future()
        number = -1 if sequence_id is None else _number("sequence_id", sequence_id)
        message = PendingMessage(self._payload(content), number, result=result, waits=waits)
        if properties:
            message.properties = _properties(properties)
        if partition_key is not None:
            message.partition_key = _text("partition_key", partition_key)
        if ordering_key is not None:
            message.ordering_key = _text("ordering_key", ordering_key, BYTES_AS_TEXT)
        if event_timestamp is not None:
            message.event_timestamp = _number("event_timestamp", event_timestamp)
        if deliver_at is None and deliver_after is not None:
            deliver_at = self._clock.wall_ms() + _milliseconds("deliver_after", deliver_after)
        if deliver_at is not None:
            message.deliver_at = _number("deliver_at", deliver_at)
        if _truth("disable_replication", disable_replication) or replication_clusters:
            clusters = (ONLY_HERE,) if disable_replication else replication_clusters
            message.replication_clusters = _texts("replication_clusters", clusters)
        return message

    def _payload(self, content: Any) -> bytes | None:  # noqa: ANN401 - depends on the schema
        if content is None:
            return None
        if self._schema is not None:
            return self._schema.encode(content)
        if type(content) is bytes:
            return content
        if isinstance(content, bytes | bytearray | memoryview):
            return bytes(content)
        raise TypeError(
            f"without a schema content is bytes, not {type(content).__name__}: encode it, or give "
            "create_producer a schema"
        )


def _number(name: str, value: object) -> int:
    """Return an argument after checking that it is a non-negative 64-bit integer."""
    kind = "a number from 0 on"
    if not isinstance(value, int):
        raise _refusal(name, kind, value)
    if not 0 <= value < 2**63:
        raise ValueError(str(_refusal(name, kind, value)))
    return value


def _text(name: str, value: object, errors: str = "strict") -> str:
    """Return an argument after checking that it is a string that UTF-8 can encode."""
    if not isinstance(value, str):
        raise _refusal(name, "a str", value)
    if not value.isascii():
        try:
            value.encode(errors=errors)
        except UnicodeEncodeError:
            raise ValueError(
                f"{name} is text that UTF-8 can write, not {value!a:.50}: replace its surrogates"
            ) from None
    return value


def _truth(name: str, value: object) -> bool:
    """Return an argument as True or False; None counts as False."""
    if not isinstance(value, bool | None):
        raise _refusal(name, "True or False", value)
    return bool(value)


def _milliseconds(name: str, value: object) -> int:
    """Convert a timedelta argument into milliseconds."""
    if not isinstance(value, timedelta):
        raise _refusal(name, "a timedelta", value)
    return value // _MILLISECOND


def _texts(name: str, value: object) -> tuple[str, ...]:
    """Return a sequence of strings as a tuple, after checking each of them."""
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise _refusal(name, "a list of str", value)
    return tuple(_text(name, text) for text in value)


def _properties(value: object) -> dict[str, str]:
    """Return a checked copy of a message's properties.

    The application may change its own mapping before the message is sent.
    """
    if not isinstance(value, Mapping):
        raise _refusal("properties", "a dict of str", value)
    return {
        _text("a property's name", key): _text(f"the property {key!r:.50}", text)
        for key, text in value.items()
    }


def _refusal(name: str, kind: str, value: object) -> TypeError:
    return TypeError(f"{name} is {kind}, not {value!r:.50}")


@dataclass(slots=True, eq=False)
class PendingMessage(OutgoingMessage):
    """A message that is being sent, until its receipt or error.

    Args:
        payload: Payload bytes; None for a null value.
        sequence_id: Sequence id; with -1, the producer assigns the next one.
        result: Future of the message's id, or of the error.
        waits: Whether the message may wait for a queue slot and memory, instead of failing.

    Attributes:
        result: Future of the message's id, or of the error.
        waits: Whether the message may wait for a queue slot and memory, instead of failing.
        needs_bytes: Number of bytes of memory to reserve.
        partition: Index of the target partition.
        placed: Whether the message itself has a queue slot; later its entry has the slot.
        reservation: Reserved memory, held until the message's receipt or error.
        chunks: The message's chunks, once it is being sent in chunks.
        serial: Serial number of the message in its producer.
        created_at: Time at which the message was submitted.
    """

    _: KW_ONLY
    result: asyncio.Future[MessageId]
    waits: bool
    needs_bytes: int = 0
    partition: int = 0
    placed: bool = False
    reservation: Reservation | None = None
    chunks: Chunks | None = None
    serial: int = 0
    created_at: float = 0.0

    @property
    def is_admitted(self) -> bool:
        """True if the message has a queue slot and memory of its own, but is not sent yet."""
        return self.placed and self.reservation is not None

    @property
    def held_bytes(self) -> int:
        """Bytes of memory to reserve: the payload, as upstream, and the keys and properties."""
        size = self.size_bytes
        if self.properties:
            size += sum(map(_size, chain.from_iterable(self.properties.items())))
        if self.partition_key is not None:
            size += _size(self.partition_key)
        if self.ordering_key is not None:
            size += _size(self.ordering_key)
        return size

    def release(self) -> None:
        """Release the reserved memory; further calls do nothing."""
        if self.reservation is not None:
            self.reservation.release()

    def fail(self, error: Exception) -> None:
        """Set an error on the future that the application waits for, unless it is done."""
        if not self.result.done():
            self.result.set_exception(raised_anew(error))
            # Retrieved: the interpreter does not log an ignored error.
            self.result.exception()


def _size(text: str) -> int:
    """Return the size of a string in bytes of UTF-8."""
    return len(text) if text.isascii() else len(text.encode(errors="surrogateescape"))
