"""Errors of the client of the binary protocol.

PulsarClientError
    ConnectError                 the server cannot be reached, or refused the handshake
    DisconnectedError            the connection ended while a request was under way
    RequestTimeoutError          no answer in time
    TooManyPendingRequestsError  the connection's bound of unanswered requests
    ClientClosedError            the client was closed
    ServerResponseError          the server answered with an error
    AnswerDeclinedError          the caller did not want an answer of the announced size
    AnswerTooLargeError          an answer above the negotiated frame limit
    RequestTooLargeError         a request that the server would end the connection for
"""

from __future__ import annotations

import proto.PulsarApi_pb2 as pb


class PulsarClientError(Exception):
    """Root of the client's errors."""


class ConnectError(PulsarClientError):
    """The server cannot be reached, or refused the handshake."""


class DisconnectedError(PulsarClientError):
    """The connection ended while a request was under way.

    Attributes:
        server: The server's address, host:port.
    """

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.server = server

    def __str__(self) -> str:
        return f"Disconnected from server at {self.server}"


class RequestTimeoutError(PulsarClientError):
    """The server did not answer in time."""


class TooManyPendingRequestsError(PulsarClientError):
    """The connection has as many unanswered requests as it may have."""


class ClientClosedError(PulsarClientError):
    """The client was closed."""


class ServerResponseError(PulsarClientError):
    """The server answered with an error.

    Attributes:
        server_error: Pulsar's error code.
        message: The server's text.
    """

    def __init__(self, server_error: pb.ServerError.ValueType, message: str) -> None:
        super().__init__(server_error, message)
        self.server_error = server_error
        self.message = message

    def __str__(self) -> str:
        return f"{pb.ServerError.Name(self.server_error)}: {self.message}"


class AnswerDeclinedError(PulsarClientError):
    """The caller declined an answer when its size was announced; its body was drained.

    Attributes:
        total_size: What the answer's length field said, in bytes.
    """

    def __init__(self, total_size: int) -> None:
        super().__init__(total_size)
        self.total_size = total_size

    def __str__(self) -> str:
        return f"an answer of {self.total_size} bytes was declined"


class AnswerTooLargeError(PulsarClientError):
    """An answer above the negotiated frame limit was announced; its body was drained.

    Attributes:
        total_size: What the answer's length field said, in bytes.
        limit_bytes: The largest it may say.
    """

    def __init__(self, total_size: int, limit_bytes: int) -> None:
        super().__init__(total_size, limit_bytes)
        self.total_size = total_size
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        return (
            f"the answer of {self.total_size} bytes is larger than the frame limit of "
            f"{self.limit_bytes} bytes: raise maxMessageSize on broker and proxy"
        )


class RequestTooLargeError(PulsarClientError):
    """A request larger than the server would take; it was not sent.

    Attributes:
        size_bytes: Size of the request's frame.
        limit_bytes: The server's maxMessageSize, or the bound of commands if that is less.
    """

    def __init__(self, size_bytes: int, limit_bytes: int) -> None:
        super().__init__(size_bytes, limit_bytes)
        self.size_bytes = size_bytes
        self.limit_bytes = limit_bytes

    def __str__(self) -> str:
        return (
            f"a request of {self.size_bytes} bytes is larger than {self.limit_bytes} bytes, the "
            "broker's maxMessageSize or 64 KiB: ask with a shorter name, pattern or properties"
        )
