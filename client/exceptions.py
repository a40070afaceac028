"""The errors that programs of this client meet, under the names of the official Python client.

All derive from PulsarException. A server's refusal is raised as ServerResponseError *and* as the
error that its code stands for: ``except ProducerBusy`` and ``except ServerResponseError`` both
catch it.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb

if TYPE_CHECKING:
    from typing import TypeAlias

    Code: TypeAlias = pb.ServerError.ValueType


class Result(IntEnum):
    """The code of an error, as the official clients number them."""

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
    """Root of this client's errors, each of which has the code of its name, or its parent's."""

    result = Result.UnknownError

    def __init_subclass__(cls) -> None:
        if cls.__name__ in Result.__members__:
            cls.result = Result[cls.__name__]

    def error(self) -> Result:
        """Return the error's code."""
        return self.result


class UnknownError(PulsarException):
    """The server failed in a way that it has no code for."""


class InvalidConfiguration(PulsarException, ValueError):  # noqa: N818
    """An argument, or a combination of arguments, makes no sense.

    A ValueError as well, as the official client raises for its arguments.
    """


class Timeout(PulsarException, TimeoutError):  # noqa: N818
    """It was not done in time."""


class LookupError(PulsarException):
    """The server that serves a topic was not found out."""


class ConnectError(PulsarException):
    """The server cannot be reached, or refused the handshake."""


class ReadError(PulsarException):
    """The connection broke while it was read."""


class AuthenticationError(PulsarException):
    """The server does not believe who this client is."""


class AuthorizationError(PulsarException):
    """The server does not allow this client to do that."""


class ErrorGettingAuthenticationData(PulsarException):
    """The client's own credentials cannot be read."""


class BrokerMetadataError(PulsarException):
    """The broker failed to read or to write its metadata."""


class BrokerPersistenceError(PulsarException):
    """The broker failed to store a message."""


class ChecksumError(PulsarException):
    """A message arrived damaged."""


class ConsumerBusy(PulsarException):
    """The subscription has a consumer already that does not share it."""


class NotConnected(PulsarException):
    """The connection ended, or is not there yet."""


class AlreadyClosed(PulsarException):
    """The client, producer, consumer or reader was closed."""


class InvalidMessage(PulsarException):
    """A message cannot be sent as it is."""


class ConsumerNotInitialized(PulsarException):
    """The consumer is not ready yet."""


class ProducerNotInitialized(PulsarException):
    """The producer is not ready yet."""


class ProducerBusy(PulsarException):
    """The topic has a producer of that name, or none of its kind may be added."""


class TooManyLookupRequestException(PulsarException):
    """The server, or this client, has as many questions under way as it takes."""


class InvalidTopicName(PulsarException, ValueError):  # noqa: N818
    """A name is not a topic's."""


class InvalidUrl(PulsarException, ValueError):  # noqa: N818
    """A service URL cannot be read."""


class ServiceUnitNotReady(PulsarException):
    """The broker does not serve the topic at this moment; it may soon."""


class OperationNotSupported(PulsarException):
    """This client, or this kind of topic or subscription, does not do that."""


class ProducerBlockedQuotaExceededError(PulsarException):
    """The topic's backlog is above its quota: producers have to wait."""


class ProducerBlockedQuotaExceededException(PulsarException):
    """The topic's backlog is above its quota: producers are refused."""


class ProducerQueueIsFull(PulsarException):
    """As many messages wait for their receipts as may."""


class ProducerQueueIsFullError(ProducerQueueIsFull):
    """A message was refused: as many wait for their receipts as may (``max_pending_messages``)."""


class MessageTooBig(PulsarException):
    """A message is larger than the broker takes."""


class TopicNotFound(PulsarException):
    """The topic is not there."""


class SubscriptionNotFound(PulsarException):
    """The subscription is not there."""


class ConsumerNotFound(PulsarException):
    """The broker does not know the consumer."""


class UnsupportedVersionError(PulsarException):
    """The server is too old for this, or too new."""


class TopicTerminated(PulsarException):
    """The topic was terminated: nothing can be published to it any more."""


class CryptoError(PulsarException):
    """A message cannot be encrypted or decrypted."""


class IncompatibleSchema(PulsarException):
    """The schema does not fit those the topic has."""


class ConsumerAssignError(PulsarException):
    """The consumer cannot be given the keys it asked for."""


class CumulativeAcknowledgementNotAllowedError(PulsarException):
    """A shared subscription has no order to acknowledge up to."""


class TransactionCoordinatorNotFoundError(PulsarException):
    """The server has no transaction coordinator."""


class InvalidTxnStatusError(PulsarException):
    """The transaction is not in a state for this."""


class NotAllowedError(PulsarException):
    """The server does not do that, whoever asks."""


class TransactionConflict(PulsarException):
    """The message is part of another transaction."""


class TransactionNotFound(PulsarException):
    """The transaction is not there."""


class ProducerFenced(PulsarException):
    """Another producer has taken the topic for itself."""


class MemoryBufferIsFull(PulsarException):
    """The client's memory for messages is used up."""


class MemoryBufferIsFullError(MemoryBufferIsFull):
    """A message was refused: the client's memory is used up (``memory_limit_bytes``)."""


class Interrupted(PulsarException):
    """The waiting was interrupted."""


class ServerResponseError(PulsarException):
    """The server answered with an error.

    Attributes:
        server_error: Pulsar's error code.
        message: The server's text.
        at_handshake: Whether it answers the handshake of a connection, not a request.
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
    """Return the error of a server's answer, of the class that its code stands for as well."""
    return _CLASSES.get(server_error, ServerResponseError)(server_error, message)


_NAMED: dict[Code, type[PulsarException]] = {
    pb.UnknownError: UnknownError,
    pb.MetadataError: BrokerMetadataError,
    pb.PersistenceError: BrokerPersistenceError,
    pb.AuthenticationError: AuthenticationError,
    pb.AuthorizationError: AuthorizationError,
    pb.ConsumerBusy: ConsumerBusy,
    pb.ServiceNotReady: ServiceUnitNotReady,
    pb.ProducerBlockedQuotaExceededError: ProducerBlockedQuotaExceededError,
    pb.ProducerBlockedQuotaExceededException: ProducerBlockedQuotaExceededException,
    pb.ChecksumError: ChecksumError,
    pb.UnsupportedVersionError: UnsupportedVersionError,
    pb.TopicNotFound: TopicNotFound,
    pb.SubscriptionNotFound: SubscriptionNotFound,
    pb.ConsumerNotFound: ConsumerNotFound,
    pb.TooManyRequests: TooManyLookupRequestException,
    pb.TopicTerminatedError: TopicTerminated,
    pb.ProducerBusy: ProducerBusy,
    pb.InvalidTopicName: InvalidTopicName,
    pb.IncompatibleSchema: IncompatibleSchema,
    pb.ConsumerAssignError: ConsumerAssignError,
    pb.TransactionCoordinatorNotFound: TransactionCoordinatorNotFoundError,
    pb.InvalidTxnStatus: InvalidTxnStatusError,
    pb.NotAllowedError: NotAllowedError,
    pb.TransactionConflict: TransactionConflict,
    pb.TransactionNotFound: TransactionNotFound,
    pb.ProducerFenced: ProducerFenced,
}
_CLASSES: dict[Code, type[ServerResponseError]] = {
    code: type(named.__name__, (ServerResponseError, named), {"__doc__": named.__doc__})
    for code, named in _NAMED.items()
}
