"""Exceptions raised when a peer violates the wire protocol.

RemoteProtocolError       the peer broke the protocol: its connection is closed
    FrameTooLargeError    a length field above the limit
    CommandTooLargeError  a command above the bound of its type
"""

from __future__ import annotations


class RemoteProtocolError(Exception):
    """The peer violated the protocol; its connection is closed."""


class FrameTooLargeError(RemoteProtocolError):
    """A frame's length field announced more bytes than allowed.

    Attributes:
        size_bytes: The announced size.
        limit_bytes: The largest allowed value.
    """

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(size_bytes, limit_bytes)
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        return (
            f"a frame of {self.size_bytes} bytes is announced, at most {self.limit_bytes} are "
            "allowed (maxMessageSize + 10236)"
        )


class CommandTooLargeError(RemoteProtocolError):
    """A command's length field announced more bytes than commands of its type may have.

    Attributes:
        what: The name of the command.
        size_bytes: The announced size.
        limit_bytes: The largest size that is parsed.
    """

    def __init__(self, what: str, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(what, size_bytes, limit_bytes)
        self.what = what
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        return f"{self.what} of {self.size_bytes} bytes, at most {self.limit_bytes} are parsed"
