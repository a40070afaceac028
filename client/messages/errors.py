"""Errors of unreadable messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.exceptions import InvalidMessage

if TYPE_CHECKING:
    from typing import TypeAlias

    ValidationError: TypeAlias = pb.CommandAck.ValidationError.ValueType


class BrokenEntryError(InvalidMessage):
    """An unreadable entry; the acknowledgement reports the reason to the broker.

    Attributes:
        validation_error: The reason in CommandAck.
        messages: Permits counted by the broker.
    """

    def __init__(self, validation_error: ValidationError, message: str, messages: int = 1) -> None:
        super().__init__(message)
        self.validation_error = validation_error
        self.messages = messages

    def __str__(self) -> str:
        return f"{pb.CommandAck.ValidationError.Name(self.validation_error)}: {self.args[0]}"


class TooLargeEntryError(BrokenEntryError):
    """An entry larger than the client's limit; another client may accept the entry."""

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            pb.CommandAck.UncompressedSizeCorruption,
            f"a message of {size_bytes} bytes is larger than {limit_bytes}: raise "
            "memory_limit_bytes to its size",
        )
