"""Translation of brokers' errors into the errors that the proxy sends to its clients.

In profile pulsar a lookup's error reaches the client as ServiceNotReady with a JSON text, for every
broker error; otherwise code and text are forwarded unchanged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from client.connection.errors import AnswerTooLargeError, DisconnectedError, RequestTooLargeError
from client.exceptions import PulsarException, ServerResponseError
from limiter.memory.dual_limiter import LimitType
from proto.commands import error_command, get_schema_failed, lookup_failed, partitions_failed
from proto.excerpts import TEXT_BYTES, excerpt
from proto.frames import LENGTH_FIELD_BYTES
from server.connection.request_errors import (
    TOO_LARGE_FOR_A_FRAME,
    ErrorForm,
    RequestError,
    frame_text,
    not_granted,
    oversized_text,
)

if TYPE_CHECKING:
    from client.connection.cnx import ClientCnx
    from limiter.errors import PermitAcquireError, PermitTooLargeError

HEAP_LIMIT_EXCEEDED = "Failed due to heap memory limit exceeded"
DIRECT_LIMIT_EXCEEDED = "Failed due to direct memory limit exceeded"
TOO_MANY_LOOKUPS = "Too many concurrent lookup and partitionsMetadata requests"
SHOWN_BYTES = TEXT_BYTES - 200
"""Most bytes of a broker's text within a Pulsar proxy's JSON, keeping the JSON complete."""
_PASSED_ON = (pb.AuthenticationError, pb.AuthorizationError)


REFUSALS = {
    LimitType.HEAP_MEMORY: HEAP_LIMIT_EXCEEDED,
    LimitType.DIRECT_MEMORY: DIRECT_LIMIT_EXCEEDED,
}
"""The error texts for memory not granted in time, by budget."""


def not_in_time(limit_type: LimitType, error: PermitAcquireError | None = None) -> RequestError:
    """Return the error for a request that was granted no memory, as it timed out or was refused."""
    return not_granted(error, REFUSALS[limit_type])


def too_large(error: PermitTooLargeError, limit_type: LimitType) -> RequestError:
    """Return the error for a topic list larger than a memory limit.

    The text names the size, the limit and the configuration key.
    """
    text = oversized_text("topic list", error, limit_type, "proxy")
    return RequestError(pb.TooManyRequests, text)


def too_large_for_a_frame(total_size: int, limit_bytes: int) -> RequestError:
    """Return the error for an answer larger than the largest frame that clients accept.

    Args:
        total_size: Value of the answer's length field.
        limit_bytes: Most a length field may announce.
    """
    text = frame_text(total_size + LENGTH_FIELD_BYTES, limit_bytes + LENGTH_FIELD_BYTES)
    return RequestError(TOO_LARGE_FOR_A_FRAME, text)


@dataclass(frozen=True, slots=True)
class ErrorForms:
    """Forms of the error responses to the four types of requests that a proxy forwards."""

    lookup: ErrorForm
    partitions: ErrorForm
    topics: ErrorForm
    schema: ErrorForm

    @staticmethod
    def of_profile(*, pulsar_compatible: bool) -> ErrorForms:
        """Return the forms of error responses for profile pulsar or profile floodgate.

        Those of profile pulsar were observed on a 4.0.8 proxy.
        """
        crowded = RequestError(pb.TooManyRequests, TOO_MANY_LOOKUPS)
        not_ready = RequestError(pb.ServiceNotReady, TOO_MANY_LOOKUPS)
        no_permit = not_ready if pulsar_compatible else crowded
        return ErrorForms(
            ErrorForm(lookup_failed, crowded),
            ErrorForm(partitions_failed, no_permit, lookup_failed if pulsar_compatible else None),
            ErrorForm(error_command, no_permit),
            ErrorForm(error_command if pulsar_compatible else get_schema_failed, no_permit),
        )


class ErrorTranslation:
    """Translation of a failed broker request's error into the error for the client."""

    def of(self, error: PulsarException, broker: ClientCnx | None) -> RequestError:
        """Return the client's error for a failed lookup or listing: the broker's own error."""
        if isinstance(error, AnswerTooLargeError):
            return too_large_for_a_frame(error.total_size, error.limit_bytes)
        if isinstance(error, RequestTooLargeError):
            return RequestError(pb.NotAllowedError, str(error))
        if isinstance(error, ServerResponseError):
            return RequestError(error.server_error, error.message, by_broker=True)
        return RequestError(pb.ServiceNotReady, str(error))

    def of_partitions(self, error: PulsarException, broker: ClientCnx | None) -> RequestError:
        """Return the client's error for a failed partition query: the broker's own error."""
        return self.of(error, broker)


class PulsarErrorTranslation(ErrorTranslation):
    """Translation as by a Pulsar proxy, which wraps error texts and replaces most codes."""

    def of(self, error: PulsarException, broker: ClientCnx | None) -> RequestError:
        """Return the client's error for a failed lookup or listing, mostly as ServiceNotReady.

        Authentication and authorization errors of the broker keep their code.
        """
        if isinstance(error, ServerResponseError):
            passed_on = error.server_error in _PASSED_ON
            code = error.server_error if passed_on else pb.ServiceNotReady
            return RequestError(code, wrapped_text(error, broker), by_broker=True)
        if isinstance(error, DisconnectedError):
            host = error.server.rsplit(":", 1)[0]
            text = f"Disconnected from server at {host}/{error.server}"
            return RequestError(pb.ServiceNotReady, text)
        if isinstance(error, AnswerTooLargeError):
            return RequestError(pb.ServiceNotReady, str(error))
        return super().of(error, broker)

    def of_partitions(self, error: PulsarException, broker: ClientCnx | None) -> RequestError:
        """Return the client's error for a failed partition query, mostly with the broker's code.

        An invalid name becomes UnknownError, since a 4.0 proxy does not know the code.
        """
        if not isinstance(error, ServerResponseError):
            return self.of(error, broker)
        unknown = error.server_error == pb.InvalidTopicName
        code = pb.UnknownError if unknown else error.server_error
        return RequestError(code, wrapped_text(error, broker), by_broker=True)


def wrapped_text(error: ServerResponseError, broker: ClientCnx | None) -> str:
    """Return a broker's error text wrapped in JSON as by upstream's ClientCnx, without escaping."""
    remote = broker.peer if broker is not None else "unknown"
    local = broker.local if broker is not None else "unknown"
    host = remote.rsplit(":", 1)[0]
    request_id = broker.last_request_id if broker is not None else 0
    return (
        f'{{"errorMsg":"{excerpt(error.message, SHOWN_BYTES)}","reqId":{request_id}, '
        f'"remote":"{host}/{remote}", "local":"/{local}"}}'
    )
