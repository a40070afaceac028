"""A client for Pulsar: producers, consumers and readers on asyncio, under one memory limit.

The names are those of the official client's ``pulsar.asyncio`` and of what goes with it from
``pulsar``. They are imported when they are first used: a program that imports one module of this
package, as ``floodgate-admin`` does, does not wait for those that the others need.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from client.connection.errors import AnswerDeclinedError as AnswerDeclinedError
    from client.connection.errors import AnswerTooLargeError as AnswerTooLargeError
    from client.connection.errors import ClientClosedError as ClientClosedError
    from client.connection.errors import RequestTimeoutError as RequestTimeoutError
    from client.connection.errors import RequestTooLargeError as RequestTooLargeError
    from client.connection.errors import TooManyPendingRequestsError as TooManyPendingRequestsError
    from client.exceptions import *  # noqa: F403
    from client.pulsar_client import LookupResult as LookupResult
    from client.pulsar_client import NamespaceTopics as NamespaceTopics
    from client.pulsar_client import PulsarClient as PulsarClient

_MODULES = {
    "client.connection.errors": (
        "AnswerDeclinedError",
        "AnswerTooLargeError",
        "ClientClosedError",
        "RequestTimeoutError",
        "RequestTooLargeError",
        "TooManyPendingRequestsError",
    ),
    "client.exceptions": ("ConnectError", "PulsarException", "ServerResponseError"),
    "client.pulsar_client": ("LookupResult", "NamespaceTopics", "PulsarClient"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    """Import a name when it is first used (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)
