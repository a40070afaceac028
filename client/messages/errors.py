"""Errors of received messages that cannot be decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.exceptions import InvalidMessage

if TYPE_CHECKING:
    from typing import TypeAlias

    ValidationError: TypeAlias = pb.CommandAck.ValidationError.ValueType


class BrokenEntryError(InvalidMessage):
    """A received entry cannot be decoded.

    The consumer reports the reason to the broker with the acknowledgement.

    Attributes:
        validation_error: The reason, as a code of CommandAck.
        messages: Number of permits that the broker counts for the entry.
    """

    def __init__(self, validation_error: ValidationError, message: str, messages: int = 1) -> None:
        super().__init__(message)
        self.validation_error = validation_error
        self.messages = messages

    def __str__(self) -> str:
        return f"{pb.CommandAck.ValidationError.Name(self.validation_error)}: {self.args[0]}"


class TooLargeEntryError(BrokenEntryError):
    """A received entry exceeds this client's size limit.

    Another client may accept it.
    """

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            pb.CommandAck.UncompressedSizeCorruption,
            f"a message of {size_bytes} bytes is larger than {limit_bytes}: raise "
            "memory_limit_bytes to its size",
        )
