"""A client for Pulsar's binary protocol: lookups, partitions, topic lists; and for its admin REST.

The names are imported when they are first used: a program that imports one module of this package,
as ``floodgate-admin`` does, does not wait for those that the others need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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

_NOT_ERRORS = ("LookupResult", "NamespaceTopics", "PulsarClient")


def __getattr__(name: str) -> object:
    """Import a name when it is first used (PEP 562)."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = "client.pulsar_client" if name in _NOT_ERRORS else "client.errors"
    return getattr(import_module(module), name)
