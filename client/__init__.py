"""An asyncio client for Pulsar: producers, consumers and readers that share a memory limit.

The public names are the official client's: those of ``pulsar.asyncio`` and related ones of
``pulsar``. Each name is imported on first use: a program that needs a single module of this
package, like ``floodgate-admin``, does not load the dependencies of the other modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from client import exceptions as exceptions
    from client import schema as schema
    from client.authentication.authentication import Authentication as Authentication
    from client.authentication.authentication import AuthenticationAthenz as AuthenticationAthenz
    from client.authentication.authentication import AuthenticationBasic as AuthenticationBasic
    from client.authentication.authentication import AuthenticationOauth2 as AuthenticationOauth2
    from client.authentication.authentication import AuthenticationToken as AuthenticationToken
    from client.authentication.tls import AuthenticationTLS as AuthenticationTLS
    from client.client import Client as Client
    from client.connection.errors import AnswerDeclinedError as AnswerDeclinedError
    from client.connection.errors import AnswerTooLargeError as AnswerTooLargeError
    from client.connection.errors import ClientClosedError as ClientClosedError
    from client.connection.errors import RequestTimeoutError as RequestTimeoutError
    from client.connection.errors import RequestTooLargeError as RequestTooLargeError
    from client.connection.errors import TooManyPendingRequestsError as TooManyPendingRequestsError
    from client.connection.service_url import ServiceInfo as ServiceInfo
    from client.consumers.consumer import Consumer as Consumer
    from client.consumers.options import ConsumerBatchReceivePolicy as ConsumerBatchReceivePolicy
    from client.consumers.options import ConsumerDeadLetterPolicy as ConsumerDeadLetterPolicy
    from client.consumers.options import ConsumerKeySharedPolicy as ConsumerKeySharedPolicy
    from client.consumers.options import NegativeAckBackoff as NegativeAckBackoff
    from client.consumers.reader import Reader as Reader
    from client.exceptions import *  # noqa: F403
    from client.interceptors import ConsumerInterceptor as ConsumerInterceptor
    from client.interceptors import ProducerInterceptor as ProducerInterceptor
    from client.messages.batch import MessageBatch as MessageBatch
    from client.messages.enums import BatchingType as BatchingType
    from client.messages.enums import CompressionType as CompressionType
    from client.messages.enums import ConsumerCryptoFailureAction as ConsumerCryptoFailureAction
    from client.messages.enums import ConsumerType as ConsumerType
    from client.messages.enums import HashingScheme as HashingScheme
    from client.messages.enums import InitialPosition as InitialPosition
    from client.messages.enums import KeySharedMode as KeySharedMode
    from client.messages.enums import PartitionsRoutingMode as PartitionsRoutingMode
    from client.messages.enums import ProducerAccessMode as ProducerAccessMode
    from client.messages.enums import RegexSubscriptionMode as RegexSubscriptionMode
    from client.messages.message import EncryptionContext as EncryptionContext
    from client.messages.message import EncryptionKey as EncryptionKey
    from client.messages.message import Message as Message
    from client.messages.message_id import MessageId as MessageId
    from client.producers.producer import Producer as Producer
    from client.pulsar_client import LookupResult as LookupResult
    from client.pulsar_client import NamespaceTopics as NamespaceTopics
    from client.pulsar_client import PulsarClient as PulsarClient
    from client.refused import AutoClusterFailover as AutoClusterFailover
    from client.refused import ConsoleLogger as ConsoleLogger
    from client.refused import CryptoKeyReader as CryptoKeyReader
    from client.refused import FileLogger as FileLogger
    from client.refused import Function as Function
    from client.refused import LoggerLevel as LoggerLevel
    from client.refused import SerDe as SerDe
    from client.refused import ServiceInfoProvider as ServiceInfoProvider
    from client.schema.schema import BytesSchema as BytesSchema
    from client.table_view import TableView as TableView
    from limiter.client_memory.memory_limit_controller import (
        MemoryLimitController as MemoryLimitController,
    )

_MODULES = {
    ".authentication.authentication": (
        "Authentication",
        "AuthenticationAthenz",
        "AuthenticationBasic",
        "AuthenticationOauth2",
        "AuthenticationToken",
    ),
    ".authentication.tls": ("AuthenticationTLS",),
    ".client": ("Client", "MemoryLimitController"),
    ".connection.errors": (
        "AnswerDeclinedError",
        "AnswerTooLargeError",
        "ClientClosedError",
        "RequestTimeoutError",
        "RequestTooLargeError",
        "TooManyPendingRequestsError",
    ),
    ".connection.service_url": ("ServiceInfo",),
    ".consumers.consumer": ("Consumer",),
    ".consumers.options": (
        "ConsumerBatchReceivePolicy",
        "ConsumerDeadLetterPolicy",
        "ConsumerKeySharedPolicy",
        "NegativeAckBackoff",
    ),
    ".consumers.reader": ("Reader",),
    ".interceptors": (
        "ConsumerInterceptor",
        "ProducerInterceptor",
    ),
    ".messages.enums": (
        "BatchingType",
        "CompressionType",
        "ConsumerCryptoFailureAction",
        "ConsumerType",
        "HashingScheme",
        "InitialPosition",
        "KeySharedMode",
        "PartitionsRoutingMode",
        "ProducerAccessMode",
        "RegexSubscriptionMode",
    ),
    ".messages.message": (
        "EncryptionContext",
        "EncryptionKey",
        "Message",
    ),
    ".messages.batch": ("MessageBatch",),
    ".messages.message_id": ("MessageId",),
    ".producers.producer": ("Producer",),
    ".pulsar_client": (
        "LookupResult",
        "NamespaceTopics",
        "PulsarClient",
    ),
    ".refused": (
        "AutoClusterFailover",
        "ConsoleLogger",
        "CryptoKeyReader",
        "FileLogger",
        "Function",
        "LoggerLevel",
        "SerDe",
        "ServiceInfoProvider",
    ),
    ".schema.schema": ("BytesSchema",),
    ".table_view": ("TableView",),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}
_SUBMODULES = ("exceptions", "schema")


def _errors() -> dict[str, object]:
    """Return the exception classes and the enumeration of their codes, keyed by class name."""
    found = vars(import_module(f"{__name__}.exceptions")).items()
    kinds = {name: one for name, one in found if isinstance(one, type)}
    return {n: one for n, one in kinds.items() if n == "Result" or issubclass(one, Exception)}


def __getattr__(name: str) -> object:
    """Import a public name of this package when the program first uses the name (PEP 562)."""
    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    if name == "__all__":
        return sorted([*_HOME, *_errors()])
    if name in _HOME:
        return getattr(import_module(_HOME[name], __name__), name)
    if name[:1].isupper() and name in _errors():
        return _errors()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
