"""Exceptions by which the handler of a request has it answered with an error, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import proto.PulsarApi_pb2 as pb


class RequestError(Exception):
    """The request is answered with an error.

    Attributes:
        server_error: Pulsar's error code.
        message: The text; upstream's own where clients may know it.
        by_broker: At a proxy: the broker refused, and not the proxy or the way between them.
    """

    def __init__(
        self, server_error: pb.ServerError.ValueType, message: str, *, by_broker: bool = False
    ) -> None:
        super().__init__(server_error, message)
        self.server_error = server_error
        self.message = message
        self.by_broker = by_broker

    def __str__(self) -> str:
        return f"{pb.ServerError.Name(self.server_error)}: {self.message}"


class UnansweredRequestError(Exception):
    """Profile pulsar: the request is never answered, as recorded of a real broker and proxy.

    So is every listing of a namespace and mode whose first one exceeded the heap limit: with a
    pattern that keeps nothing, with a hash, and also after the namespace has shrunk. And so is a
    partition query for a name that is but ``-partition-0``.
    """


ErrorBuilder = Callable[[int, pb.ServerError.ValueType, str], pb.BaseCommand]


class ErrorForm(NamedTuple):
    """The commands by which the errors of one kind of request reach the client.

    Attributes:
        build: Builds the command of an error of this server.
        no_permit: The error of a request that finds no lookup permit.
        build_relayed: At a proxy: builds the command of an error that the broker answered.
    """

    build: ErrorBuilder
    no_permit: RequestError
    build_relayed: ErrorBuilder | None = None

    def command(self, request_id: int, error: RequestError) -> pb.BaseCommand:
        """Build the answer to a request that failed."""
        relayed = self.build_relayed if error.by_broker else None
        return (relayed or self.build)(request_id, error.server_error, error.message)
