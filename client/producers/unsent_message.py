"""An unsent message, as passed to routers and interceptors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.messages.message import EntryHead, Message
from client.messages.outgoing import SendingProducer, metadata_of

if TYPE_CHECKING:
    from client.producers.sending.pending_message import PendingMessage

_NOWHERE = pb.MessageIdData(ledgerId=2**64 - 1, entryId=2**64 - 1)
_NOBODY = SendingProducer(0, "")


class _Bytes:
    """The schema of plain bytes: an unsent message's value is never decoded."""

    def decode_message(self, message: Message) -> bytes:
        """Return the payload."""
        return message.data()


def unsent_message(message: PendingMessage, topic: str) -> Message:
    """Return a message with all of the program's fields, and no id."""
    command = pb.CommandMessage(consumer_id=0, message_id=_NOWHERE)
    # The producer assigns the sequence id at sending.
    number, message.sequence_id = message.sequence_id, max(message.sequence_id, 0)
    metadata = metadata_of(message, _NOBODY, 0)
    message.sequence_id = number
    return Message(EntryHead(metadata, command, topic, _Bytes()), None, message.payload or b"", -1)
