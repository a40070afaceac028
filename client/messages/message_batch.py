"""Messages of a batch whose bytes the program already has, such as from a tiered store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

import proto.PulsarApi_pb2 as pb
from client.messages.entry import Entry, EntrySource
from client.messages.message import EntryHead, PlainBytes
from client.messages.message_id import MessageId

if TYPE_CHECKING:
    from client.messages.message import Message


class MessageBatch:
    """A reader of a batch's payload, uncompressed and without the entry's metadata.

    Example:
        messages = MessageBatch().with_message_id(message_id).parse_from(payload, 10)
    """

    def __init__(self) -> None:
        self._message_id = MessageId.earliest

    def with_message_id(self, msg_id: MessageId) -> Self:
        """Set the id of the entry, the base of the messages' ids."""
        if not isinstance(msg_id, MessageId):
            raise TypeError(f"msg_id is a MessageId, not {type(msg_id).__name__}")
        self._message_id = msg_id
        return self

    def parse_from(self, data: bytes, size: int) -> list[Message]:
        """Return the first messages of a batch.

        Args:
            data: The batch's payload.
            size: Number of messages.

        Raises:
            InvalidMessage: The payload has fewer messages.
        """
        command = pb.CommandMessage(consumer_id=0, message_id=self._message_id.to_proto())
        metadata = pb.MessageMetadata(producer_name="", sequence_id=0, publish_time=0)
        head = EntryHead(metadata, command, self._message_id.topic_name, PlainBytes())
        head.batch_size = size
        entry = Entry(head, data, None, EntrySource(head.topic_name, head.schema))
        messages: list[Message] = []
        while size > 0 and entry.left:
            messages += entry.take()
        return messages
