"""Connection errors for which the official clients have no class.

ConnectError
    TlsError                     the server's certificate is not trusted, or the server has no TLS
NotConnected
    DisconnectedError            the connection ended during a request
Timeout
    RequestTimeoutError          the server did not answer in time
TooManyLookupRequestException
    TooManyPendingRequestsError  too many requests on the connection are unanswered
AlreadyClosed
    ClientClosedError            the client was closed
AnswerDeclinedError              the caller declined a response of the announced size
AnswerTooLargeError              a response exceeds the negotiated frame limit
RequestTooLargeError             a request exceeds the server's size limit
"""

from __future__ import annotations

from client.exceptions import (
    AlreadyClosed,
    ConnectError,
    NotConnected,
    PulsarException,
    Timeout,
    TooManyLookupRequestException,
)


class TlsError(ConnectError):
    """The server's certificate is not trusted, or the server speaks no TLS.

    A retry would fail again.
    """


class DisconnectedError(NotConnected):
    """The connection ended before the server answered a request.

    Attributes:
        server: The server's address, host:port.
    """

    def __init__(self, server: str) -> None:
        super().__init__(server)
        self.server = server

    def __str__(self) -> str:
        return f"Disconnected from server at {self.server}"


class RequestTimeoutError(Timeout):
    """The server did not answer a request within the operation timeout."""


class TooManyPendingRequestsError(TooManyLookupRequestException):
    """The connection has the maximum number of unanswered requests."""


class ClientClosedError(AlreadyClosed):
    """The client was closed before or during the call."""


class AnswerDeclinedError(PulsarException):
    """The caller declined a response because of its announced size.

    The response's body was read and discarded.

    Attributes:
        total_size: Size of the response in bytes, from its length field.
    """

    def __init__(self, total_size: int) -> None:
        super().__init__(total_size)
        self.total_size = total_size

    def __str__(self) -> str:
        return f"an answer of {self.total_size} bytes was declined"


class AnswerTooLargeError(PulsarException):
    """The announced size of a response exceeds the negotiated frame limit.

    The response's body was read and discarded.

    Attributes:
        total_size: Size of the response in bytes, from its length field.
        limit_bytes: The negotiated frame limit, in bytes.
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


class RequestTooLargeError(PulsarException):
    """A request exceeds the server's size limit, and was not sent.

    Attributes:
        size_bytes: Size of the request's frame in bytes.
        limit_bytes: The server's maxMessageSize in bytes, or the lower limit for commands.
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
