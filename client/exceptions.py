"""Exceptions of the client, with the names of the official Python client.

All derive from PulsarException. A server's refusal is raised as ServerResponseError *and* as the
error of its code: ``except ProducerBusy`` and ``except ServerResponseError`` both catch the same
refusal.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from typing import TypeAlias

    Code: TypeAlias = pb.ServerError.ValueType


class Result(IntEnum):
    """The error codes of the official clients."""

    Ok = 0
    UnknownError = 1
    InvalidConfiguration = 2
    Timeout = 3
    LookupError = 4
    ConnectError = 5
    ReadError = 6
    AuthenticationError = 7
    AuthorizationError = 8
    ErrorGettingAuthenticationData = 9
    BrokerMetadataError = 10
    BrokerPersistenceError = 11
    ChecksumError = 12
    ConsumerBusy = 13
    NotConnected = 14
    AlreadyClosed = 15
    InvalidMessage = 16
    ConsumerNotInitialized = 17
    ProducerNotInitialized = 18
    ProducerBusy = 19
    TooManyLookupRequestException = 20
    InvalidTopicName = 21
    InvalidUrl = 22
    ServiceUnitNotReady = 23
    OperationNotSupported = 24
    ProducerBlockedQuotaExceededError = 25
    ProducerBlockedQuotaExceededException = 26
    ProducerQueueIsFull = 27
    MessageTooBig = 28
    TopicNotFound = 29
    SubscriptionNotFound = 30
    ConsumerNotFound = 31
    UnsupportedVersionError = 32
    TopicTerminated = 33
    CryptoError = 34
    IncompatibleSchema = 35
    ConsumerAssignError = 36
    CumulativeAcknowledgementNotAllowedError = 37
    TransactionCoordinatorNotFoundError = 38
    InvalidTxnStatusError = 39
    NotAllowedError = 40
    TransactionConflict = 41
    TransactionNotFound = 42
    ProducerFenced = 43
    MemoryBufferIsFull = 44
    Interrupted = 45


class PulsarException(Exception):  # noqa: N818 - the official client's name, as all below
    """Base class of the client's exceptions.

    ``result`` is the code of a class's own name, or else of its parent's.
    """

    result = Result.UnknownError

    def __init_subclass__(cls) -> None:
        if cls.__name__ in Result.__members__:
            cls.result = Result[cls.__name__]

    def error(self) -> Result:
        """Return the error code of the exception."""
        return self.result


class UnknownError(PulsarException):
    """The server failed without giving a specific error code."""


class InvalidConfiguration(PulsarException, ValueError):  # noqa: N818
    """An argument, or a combination of arguments, is invalid.

    Also a ValueError, as in the official client.
    """


class Timeout(PulsarException, TimeoutError):  # noqa: N818
    """An operation did not end within its timeout."""


class LookupError(PulsarException):
    """The lookup of the broker that serves a topic failed."""


class ConnectError(PulsarException):
    """The server cannot be reached, or refused the handshake."""


class ReadError(PulsarException):
    """The connection broke while data was being read."""


class AuthenticationError(PulsarException):
    """The server rejected the client's credentials."""


class AuthorizationError(PulsarException):
    """The client's role lacks the permission for the operation."""


class ErrorGettingAuthenticationData(PulsarException):
    """The client could not read its own credentials."""


class BrokerMetadataError(PulsarException):
    """The broker failed to read or write its metadata store."""


class BrokerPersistenceError(PulsarException):
    """The broker failed to store a message."""


class ChecksumError(PulsarException):
    """A message was damaged in transit: its checksum does not match."""


class ConsumerBusy(PulsarException):
    """The subscription has an exclusive consumer already."""


class NotConnected(PulsarException):
    """The connection has ended, or is not established yet."""


class AlreadyClosed(PulsarException):
    """The client, producer, consumer or reader was closed."""


class InvalidMessage(PulsarException):
    """A message, or a message id, is invalid."""


class ConsumerNotInitialized(PulsarException):
    """The consumer has not been subscribed yet."""


class ProducerNotInitialized(PulsarException):
    """The producer has not been attached to its broker yet."""


class ProducerBusy(PulsarException):
    """The topic has a producer with the same name, or allows no further producer."""


class TooManyLookupRequestException(PulsarException):
    """The limit of concurrent lookups is reached, of the server or of the client."""


class InvalidTopicName(PulsarException, ValueError):  # noqa: N818
    """The name of a topic is invalid."""


class InvalidUrl(PulsarException, ValueError):  # noqa: N818
    """A service URL is invalid."""


class ServiceUnitNotReady(PulsarException):
    """The broker does not serve the topic at the moment; a retry may succeed."""


class OperationNotSupported(PulsarException):
    """The client, or the kind of topic or subscription, does not support the operation."""


class ProducerBlockedQuotaExceededError(PulsarException):
    """The topic's backlog exceeds its quota, so that producers must wait."""


class ProducerBlockedQuotaExceededException(PulsarException):
    """The topic's backlog exceeds its quota, so that producers are refused."""


class ProducerQueueIsFull(PulsarException):
    """The producer has the maximum number of messages without a receipt."""


class ProducerQueueIsFullError(ProducerQueueIsFull):
    """A message was not sent, because the producer's queue is full (``max_pending_messages``)."""


class MessageTooBig(PulsarException):
    """A message exceeds the broker's size limit."""


class TopicNotFound(PulsarException):
    """The topic does not exist."""


class SubscriptionNotFound(PulsarException):
    """The subscription does not exist."""


class ConsumerNotFound(PulsarException):
    """The broker has no consumer with this id."""


class UnsupportedVersionError(PulsarException):
    """The server's version does not support the operation."""


class TopicTerminated(PulsarException):
    """The topic was terminated, so that it accepts no further messages."""


class CryptoError(PulsarException):
    """A message cannot be encrypted or decrypted."""


class IncompatibleSchema(PulsarException):
    """The schema is incompatible with the existing schemas of the topic."""


class ConsumerAssignError(PulsarException):
    """The consumer cannot be assigned the key ranges that it requests."""


class CumulativeAcknowledgementNotAllowedError(PulsarException):
    """Cumulative acknowledgement is not possible on a shared subscription."""


class TransactionCoordinatorNotFoundError(PulsarException):
    """The server has no transaction coordinator."""


class InvalidTxnStatusError(PulsarException):
    """The transaction's state does not allow the operation."""


class NotAllowedError(PulsarException):
    """The server never allows the operation, to any client."""


class TransactionConflict(PulsarException):
    """The message already belongs to another transaction."""


class TransactionNotFound(PulsarException):
    """The transaction does not exist."""


class ProducerFenced(PulsarException):
    """Another producer has taken over exclusive access to the topic."""


class MemoryBufferIsFull(PulsarException):
    """The memory that the client may use for messages is used up."""


class MemoryBufferIsFullError(MemoryBufferIsFull):
    """A message was not sent, because the client's memory is used up (``memory_limit_bytes``)."""


class Interrupted(PulsarException):
    """Waiting for the operation was interrupted."""


class ServerResponseError(PulsarException):
    """The server answered a request or the handshake with an error.

    Attributes:
        server_error: Pulsar's error code.
        message: The text in the server's response.
        at_handshake: Whether the server refused the connection's handshake, not a request.
    """

    at_handshake = False

    def __init__(self, server_error: Code, message: str) -> None:
        super().__init__(server_error, message)
        self.server_error = server_error
        self.message = message

    def __str__(self) -> str:
        name = pb.ServerError.Name(self.server_error)
        return f"{name}: {self.message}" if self.message else name


def server_response_error(server_error: Code, message: str) -> ServerResponseError:
    """Return the exception for a server's error code and text.

    It is also an instance of the class named after the code.
    """
    return _CLASSES.get(server_error, ServerResponseError)(server_error, message)


_NAMED_OTHERWISE = {
    "InvalidTxnStatus": InvalidTxnStatusError,
    "MetadataError": BrokerMetadataError,
    "PersistenceError": BrokerPersistenceError,
    "ServiceNotReady": ServiceUnitNotReady,
    "TooManyRequests": TooManyLookupRequestException,
    "TopicTerminatedError": TopicTerminated,
    "TransactionCoordinatorNotFound": TransactionCoordinatorNotFoundError,
}
"""The exception classes that are named differently from the server's errors."""


def _class_of(code_name: str) -> type[ServerResponseError]:
    named: type[PulsarException] = _NAMED_OTHERWISE.get(code_name) or globals()[code_name]
    return type(named.__name__, (ServerResponseError, named), {"__doc__": named.__doc__})


_CLASSES = {code: _class_of(name) for name, code in pb.ServerError.items()}
