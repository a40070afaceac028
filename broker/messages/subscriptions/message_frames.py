"""Encoding of MESSAGE commands by hand, because protobuf objects would dominate the cost.

The result equals protobuf's encoding of the same fields; a property test compares both.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING

from broker.messages.position import to_wire
from proto.parsing.varint import encode_varint

if TYPE_CHECKING:
    from collections.abc import Sequence

_LENGTHS = struct.Struct(">II")
_TYPE_MESSAGE = b"\x08\x09"
_MESSAGE_TAG = b"\x4a"
_LEDGER, _ENTRY, _PARTITION = b"\x08", b"\x10", b"\x18"
_CONSUMER_ID, _MESSAGE_ID, _REDELIVERY_COUNT, _ACK_SET, _EPOCH = 0x08, 0x12, 0x18, 0x20, 0x28


class MessageFrames:
    """An encoder of the MESSAGE commands for one consumer.

    Args:
        consumer_id: The client's consumer id.
        partition: The index of the topic's partition; -1 if the topic is not a partition.
    """

    __slots__ = ("_ledger", "_ledger_id", "_partition", "_start")

    def __init__(self, consumer_id: int, partition: int) -> None:
        self._start = bytes((_CONSUMER_ID,)) + encode_varint(consumer_id) + bytes((_MESSAGE_ID,))
        self._partition = _PARTITION + encode_varint(to_wire(partition))
        self._ledger_id = -1
        self._ledger = b""

    def header(
        self,
        ledger_id: int,
        entry_id: int,
        payload_bytes: int,
        redelivery_count: int = 0,
        ack_set: Sequence[int] | None = None,
        epoch: int = -1,
    ) -> bytes:
        """Return the start of a MESSAGE frame before the payload: its lengths and the command.

        Args:
            ledger_id: The entry's ledger.
            entry_id: The entry's number.
            payload_bytes: Length of the payload.
            redelivery_count: How often consumers have returned the entry before.
            ack_set: The words of the bit set of the remaining messages; None if all remain.
            epoch: The consumer's epoch; -1 if absent.
        """
        if ledger_id != self._ledger_id:
            self._ledger_id, self._ledger = ledger_id, _LEDGER + encode_varint(ledger_id) + _ENTRY
        message_id = self._ledger + encode_varint(entry_id) + self._partition
        body = self._start + bytes((len(message_id),)) + message_id
        if redelivery_count:
            body += bytes((_REDELIVERY_COUNT,)) + encode_varint(redelivery_count)
        if ack_set:
            body += b"".join(map(_ack_set_word, ack_set))
        if epoch >= 0:
            body += bytes((_EPOCH,)) + encode_varint(epoch)
        command = _TYPE_MESSAGE + _MESSAGE_TAG + encode_varint(len(body)) + body
        size = len(command)
        return _LENGTHS.pack(size + 4 + payload_bytes, size) + command


@lru_cache(maxsize=1_024)
def _ack_set_word(word: int) -> bytes:
    """Return the encoding of one word of the ack_set field.

    Most words are all ones or all zeros, therefore a cache keeps encodings. A batch has 157 words
    at most.
    """
    return bytes((_ACK_SET,)) + encode_varint(to_wire(word))
