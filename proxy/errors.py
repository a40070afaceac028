"""How errors travel from the broker to the proxy's client.

As shipped, a lookup's error reaches the client as ServiceNotReady with a JSON text, whatever
the broker said; otherwise code and text are passed on as they came.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.errors import PulsarClientError, ServerResponseError

if TYPE_CHECKING:
    from client.cnx import ClientCnx

HEAP_LIMIT_EXCEEDED = "Failed due to heap memory limit exceeded"
DIRECT_LIMIT_EXCEEDED = "Failed due to direct memory limit exceeded"
TOO_MANY_LOOKUPS = "Too many concurrent lookup and partitionsMetadata requests"
_PASSED_ON = (pb.AuthenticationError, pb.AuthorizationError)


class RequestError(Exception):
    """The request is answered with an error.

    Attributes:
        server_error: Pulsar's error code.
        message: The text.
    """

    def __init__(self, server_error: pb.ServerError.ValueType, message: str) -> None:
        super().__init__(server_error, message)
        self.server_error = server_error
        self.message = message

    def __str__(self) -> str:
        return f"{pb.ServerError.Name(self.server_error)}: {self.message}"


class ErrorTranslation:
    """Turns what a request to the broker raised into what the client is told."""

    def __init__(self, *, as_shipped: bool) -> None:
        self._as_shipped = as_shipped

    def of(self, error: PulsarClientError, broker: ClientCnx | None) -> RequestError:
        """Return the client's error for a lookup or a listing."""
        if not isinstance(error, ServerResponseError):
            return RequestError(pb.ServiceNotReady, self._text(error))
        if not self._as_shipped:
            return RequestError(error.server_error, error.message)
        passed_on = error.server_error in _PASSED_ON
        code = error.server_error if passed_on else pb.ServiceNotReady
        return RequestError(code, shipped_text(error, broker))

    def of_partitions(self, error: PulsarClientError, broker: ClientCnx | None) -> RequestError:
        """Return the client's error for a partition query: the broker's code is kept."""
        if self._as_shipped and isinstance(error, ServerResponseError):
            return RequestError(error.server_error, shipped_text(error, broker))
        return self.of(error, broker)

    def of_partition_answer(
        self, answer: pb.CommandPartitionedTopicMetadataResponse, broker: ClientCnx | None
    ) -> RequestError:
        """Return the client's error for a broker's failed answer to a partition query."""
        return self.of_partitions(ServerResponseError(answer.error, answer.message), broker)

    def _text(self, error: PulsarClientError) -> str:
        server = getattr(error, "server", None)
        if self._as_shipped and server is not None:
            host = str(server).rsplit(":", 1)[0]
            return f"Disconnected from server at {host}/{server}"
        return str(error)


def shipped_text(error: ServerResponseError, broker: ClientCnx | None) -> str:
    """Wrap a broker's text as upstream's ClientCnx does."""
    remote = broker.peer if broker is not None else "unknown"
    local = broker.local if broker is not None else "unknown"
    host = remote.rsplit(":", 1)[0]
    request_id = broker.last_request_id if broker is not None else 0
    return (
        f'{{"errorMsg":{json.dumps(error.message, ensure_ascii=False)},"reqId":{request_id}, '
        f'"remote":"{host}/{remote}", "local":"/{local}"}}'
    )
