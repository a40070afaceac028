"""How a handler says that a request is answered with an error, or with nothing at all."""

from __future__ import annotations

import proto.PulsarApi_pb2 as pb


class RequestError(Exception):
    """The request is answered with an error.

    Attributes:
        server_error: Pulsar's error code.
        message: The text; upstream's own where clients may know it.
    """

    def __init__(self, server_error: pb.ServerError.ValueType, message: str) -> None:
        super().__init__(server_error, message)
        self.server_error = server_error
        self.message = message

    def __str__(self) -> str:
        return f"{pb.ServerError.Name(self.server_error)}: {self.message}"


class UnansweredRequestError(Exception):
    """Profile pulsar: the request is never answered, as recorded of a real broker."""


TOO_MANY_LOOKUPS = "Failed due to too many pending lookup requests"
HEAP_LIMIT_EXCEEDED = "Failed due to heap memory limit exceeded"
NO_DIRECT_MEMORY = "Cannot acquire permits for direct memory"
