"""A client for Pulsar's binary protocol: lookups, partitions, topic lists."""

from client.errors import (
    AnswerDeclinedError,
    AnswerTooLargeError,
    ClientClosedError,
    ConnectError,
    PulsarClientError,
    RequestTimeoutError,
    RequestTooLargeError,
    ServerResponseError,
    TooManyPendingRequestsError,
)
from client.pulsar_client import LookupResult, NamespaceTopics, PulsarClient

__all__ = [
    "AnswerDeclinedError",
    "AnswerTooLargeError",
    "ClientClosedError",
    "ConnectError",
    "LookupResult",
    "NamespaceTopics",
    "PulsarClient",
    "PulsarClientError",
    "RequestTimeoutError",
    "RequestTooLargeError",
    "ServerResponseError",
    "TooManyPendingRequestsError",
]
