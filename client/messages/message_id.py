"""Message ids, which are positions of messages in a topic."""

from __future__ import annotations

from typing import ClassVar

from google.protobuf.message import DecodeError

import proto.PulsarApi_pb2 as pb

Place = tuple[int, int]
"""A position in a topic: ledger id and entry id."""

_LARGEST = 2**63 - 1
_UNSIGNED = 2**64


class MessageId:
    """The id of a message, made of ledger, entry, batch index and partition.

    Equality and order compare only ledger, entry, batch index and partition.

    Args:
        partition: Index of the partition; -1 for an unpartitioned topic.
        ledger_id: Id of the ledger.
        entry_id: Id of the entry in the ledger.
        batch_index: Index of the message in its batch; -1 if it is not in a batch.
        batch_size: Number of messages in the batch; 0 if there is no batch.
        topic_name: Full name of the topic or partition; "" if unknown.
        first_chunk: Id of the first chunk of a chunked message, otherwise None.

    Attributes:
        earliest: Position before the first message of every topic.
        latest: Position after the last message.
    """

    __slots__ = (
        "_batch_index",
        "_entry_id",
        "_ledger_id",
        "_partition",
        "batch_size",
        "first_chunk",
        "topic_name",
    )
    earliest: ClassVar[MessageId]
    latest: ClassVar[MessageId]

    def __init__(  # noqa: PLR0913 - the official client's arguments, and ours by name
        self,
        partition: int = -1,
        ledger_id: int = -1,
        entry_id: int = -1,
        batch_index: int = -1,
        *,
        batch_size: int = 0,
        topic_name: str = "",
        first_chunk: MessageId | None = None,
    ) -> None:
        self._partition = partition
        self._ledger_id = ledger_id
        self._entry_id = entry_id
        self._batch_index = batch_index
        self.batch_size = batch_size
        self.topic_name = topic_name
        self.first_chunk = first_chunk

    def ledger_id(self) -> int:
        """Return the id of the ledger that contains the message."""
        return self._ledger_id

    def entry_id(self) -> int:
        """Return the id of the entry in its ledger."""
        return self._entry_id

    def batch_index(self) -> int:
        """Return the index of the message in its batch; -1 if it is not in a batch."""
        return self._batch_index

    def partition(self) -> int:
        """Return the index of the partition; -1 for an unpartitioned topic."""
        return self._partition

    @property
    def entry(self) -> Place:
        """The id of the ledger, and the id of the entry in that ledger, as a pair."""
        return self._ledger_id, self._entry_id

    def to_proto(self) -> pb.MessageIdData:
        """Return the message id as a protobuf message for commands."""
        data = pb.MessageIdData(
            ledgerId=self._ledger_id % _UNSIGNED, entryId=self._entry_id % _UNSIGNED
        )
        if self._partition != -1:
            data.partition = self._partition
        if self._batch_index != -1:
            data.batch_index = self._batch_index
        if self.batch_size:
            data.batch_size = self.batch_size
        if self.first_chunk is not None:
            data.first_chunk_message_id.CopyFrom(self.first_chunk.to_proto())
        return data

    @classmethod
    def from_proto(cls, data: pb.MessageIdData, topic_name: str = "") -> MessageId:
        """Return the message id that a command contains as a protobuf message."""
        first_chunk = None
        if data.HasField("first_chunk_message_id"):
            first_chunk = cls.from_proto(data.first_chunk_message_id, topic_name)
        return cls(
            data.partition,
            _signed(data.ledgerId),
            _signed(data.entryId),
            data.batch_index,
            batch_size=data.batch_size,
            topic_name=topic_name,
            first_chunk=first_chunk,
        )

    def serialize(self) -> bytes:
        """Serialize the message id to bytes that every official client can read."""
        return self.to_proto().SerializeToString()

    @staticmethod
    def deserialize(message_id_bytes: bytes, topic: str | None = None) -> MessageId:
        """Read a message id from the bytes that ``serialize`` returned.

        Raises:
            ValueError: The bytes are not a message id.
        """
        data = pb.MessageIdData()
        try:
            data.ParseFromString(message_id_bytes)
            is_read = data.IsInitialized()
        except DecodeError:
            is_read = False
        if not is_read:
            raise ValueError(
                f"these bytes are no message id: {message_id_bytes[:32].hex()}; "
                "give what MessageId.serialize returned"
            )
        return MessageId.from_proto(data, topic or "")

    def _place(self) -> tuple[int, int, int, int]:
        return self._ledger_id, self._entry_id, self._batch_index, self._partition

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessageId) and self._place() == other._place()

    def __lt__(self, other: object) -> bool:
        return self._place() < other._place() if isinstance(other, MessageId) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._place() <= other._place() if isinstance(other, MessageId) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self._place() > other._place() if isinstance(other, MessageId) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._place() >= other._place() if isinstance(other, MessageId) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._place())

    def __str__(self) -> str:
        last = f"({self._ledger_id},{self._entry_id},{self._partition},{self._batch_index})"
        return last if self.first_chunk is None else f"{self.first_chunk};{last}"

    def __repr__(self) -> str:
        return f"<MessageId {self}>"


def _signed(number: int) -> int:
    return number - _UNSIGNED if number > _LARGEST else number


MessageId.earliest = MessageId()
MessageId.latest = MessageId(-1, _LARGEST, _LARGEST)
