"""Validation of the arguments that an application passes to the client.

Arguments of the same name follow the same rule in all methods.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import fields
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from client.authentication.authentication import Authentication
from client.authentication.tls import AuthenticationTLS, tls_context
from client.connection.connect_options import ConnectOptions
from client.exceptions import InvalidConfiguration, InvalidTopicName, OperationNotSupported
from proto.names import InvalidNameError, TopicName
from proto.transport.tls import TlsLayer

if TYPE_CHECKING:
    from collections.abc import Callable

    from _typeshed import DataclassInstance

OptionsT = TypeVar("OptionsT", bound="DataclassInstance")


def full_name(topic: str) -> str:
    """Return the full name of a topic, such as ``persistent://public/default/orders``.

    Raises:
        InvalidTopicName: The name is invalid, or is not a text.
    """
    if not isinstance(topic, str):
        raise InvalidTopicName(f"a topic's name is a str, not {type(topic).__name__}")
    try:
        return str(TopicName.parse(topic))
    except InvalidNameError as error:
        raise InvalidTopicName(str(error)) from None


_Check: TypeAlias = "Callable[[Any], bool]"


def options_of(kind: type[OptionsT], given: Mapping[str, Any]) -> OptionsT:
    """Create an options object from the arguments with the same names (``locals()``)."""
    return kind(**{one.name: given[one.name] for one in fields(kind)})


def check_options(options: DataclassInstance) -> None:
    """Check the types of options against their defaults, and values for which a rule exists.

    Raises:
        InvalidConfiguration: An option has the wrong type or value.
    """
    for one in fields(options):
        name, default, chosen = one.name, one.default, getattr(options, one.name)
        if chosen is not default:
            _check_known(name, chosen)
        if isinstance(default, bool) and not isinstance(chosen, bool):
            raise InvalidConfiguration(f"{name} is True or False, not {chosen!r:.50}")
        if isinstance(default, Enum) and not isinstance(chosen, type(default)):
            raise InvalidConfiguration(
                f"{name} is one of {type(default).__name__}, such as {default}, not {chosen!r:.50}"
            )


def check_arguments(arguments: Mapping[str, object], *optional: str) -> None:
    """Check arguments by the rules for their names; those named in ``optional`` may be None.

    Raises:
        InvalidConfiguration: An argument has the wrong type, or is out of range.
    """
    for name, value in arguments.items():
        if value is not None or name not in optional:
            _check_known(name, value)


def _check_known(name: str, value: object) -> None:
    fits, words = _KNOWN.get(name, (None, ""))
    if fits is not None and not fits(value):
        raise InvalidConfiguration(f"{name} is {words}, not {value!r:.50}")


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_texts(value: object) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(one, str) for item in value.items() for one in item
    )


def _is_instance_with(attribute: str) -> _Check:
    """Return a function that is true for an object with the given attribute.

    It is false for a class with the attribute: a class is often passed by mistake.
    """
    return lambda value: not isinstance(value, type) and hasattr(value, attribute)


def _are_interceptors(value: object) -> bool:
    return isinstance(value, Sequence) and all(map(_is_instance_with("on_close"), value))


def _is_whole(least: int) -> _Check:
    return lambda value: (
        isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**63
    )


def _from(least: int, *, whole: bool = True) -> tuple[_Check, str]:
    is_whole = _is_whole(least)
    return (
        lambda value: is_whole(value) or (not whole and isinstance(value, float) and value >= least)
    ), f"a{' whole' if whole else ''} number from {least} on"


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and abs(value) < 2**63


_FINITE = (_is_finite, "a finite number")
_TEXT = (_is_text, "a str")
_TEXTS = (_is_texts, "a dict whose keys and values are str")
_KNOWN: dict[str, tuple[_Check, str]] = {
    "ack_group_size": (_is_whole(-(2**63)), "a whole number"),
    "ack_group_time_ms": _FINITE,
    "auto_update_partitions_seconds": _FINITE,
    "batch_receive_policy": (
        _is_instance_with("max_num_message"),
        "a ConsumerBatchReceivePolicy",
    ),
    "batching_max_allowed_size_in_bytes": _from(1),
    "batching_max_messages": _from(1),
    "batching_max_publish_delay_ms": _from(0),
    "broker_consumer_stats_cache_time_ms": _FINITE,
    "concurrent_lookup_requests": _from(1, whole=False),
    "connection_timeout_ms": _from(1, whole=False),
    "consumer_name": _TEXT,
    "dead_letter_policy": (
        _is_instance_with("max_redeliver_count"),
        "a ConsumerDeadLetterPolicy",
    ),
    "expire_incomplete_chunks_seconds": _FINITE,
    "initial_sequence_id": (_is_whole(-1), "a whole number from -1 on"),
    "initial_subscription_name": _TEXT,
    "interceptors": (_are_interceptors, "a list of interceptors (instances, not classes)"),
    "key_shared_policy": (_is_instance_with("sticky_ranges"), "a ConsumerKeySharedPolicy"),
    "listener_name": _TEXT,
    "max_pending_chunked_message": _from(0),
    "max_pending_messages": _from(0),
    "max_pending_messages_across_partitions": _from(0),
    "max_total_receiver_queue_size_across_partitions": _from(0),
    "memory_limit_bytes": (_is_whole(0), "a whole number of bytes, such as 64 * 1024 * 1024"),
    "message_listener": (callable, "a function of consumer and message"),
    "message_router": (callable, "a function of message and number of partitions"),
    "negative_ack_backoff": (_is_instance_with("min_delay_ms"), "a NegativeAckBackoff"),
    "negative_ack_redelivery_delay_ms": (
        lambda value: _is_finite(value) and value >= 0,
        "a finite number from 0 on",
    ),
    "operation_timeout_seconds": _from(0, whole=False),
    "pattern_auto_discovery_period": _FINITE,
    "priority_level": (_is_whole(-(2**31)), "a whole number"),
    "producer_name": _TEXT,
    "properties": _TEXTS,
    "receiver_queue_size": _from(0),
    "reader_listener": (callable, "a function of reader and message"),
    "reader_name": _TEXT,
    "schema": (_is_instance_with("schema_info"), "a schema such as JsonSchema(Order)"),
    "send_timeout_millis": _from(0),
    "stats_interval_in_seconds": _from(0, whole=False),
    "subscription_name": _TEXT,
    "subscription_properties": _TEXTS,
    "subscription_role_prefix": _TEXT,
    "unacked_messages_timeout_ms": _FINITE,
}


_LOGGER = __name__.rpartition(".")[0]
"""Name of the logger above all loggers of the package."""


_TRUE_OR_FALSE = (bool, "True or False")
_KINDS: dict[str, tuple[Any, str]] = {
    "authentication": (Authentication | None, "an Authentication such as AuthenticationToken"),
    "logger": (logging.Logger | None, "a logging.Logger"),
    "tls_allow_insecure_connection": _TRUE_OR_FALSE,
    "tls_validate_hostname": _TRUE_OR_FALSE,
}


def connect_options(given: Mapping[str, Any], *, tls: bool) -> ConnectOptions:
    """Check the arguments of ``Client``, and return the options for its connections.

    Raises:
        InvalidConfiguration: A value has the wrong type or is out of range, or a certificate file
            is unusable.
        OperationNotSupported: A value requests an unsupported feature.
    """
    check_arguments(given, "listener_name")
    for name, (kind, words) in _KINDS.items():
        if not isinstance(given[name], kind):
            raise InvalidConfiguration(f"{name} is {words}, not {type(given[name]).__name__}")
    for name in ("io_threads", "message_listener_threads"):
        if given[name] != 1:
            raise OperationNotSupported(
                f"{name} must be 1: everything runs on the event loop, without threads"
            )
    if bool(given["tls_certificate_file_path"]) != bool(given["tls_private_key_file_path"]):
        raise InvalidConfiguration(
            "tls_certificate_file_path and tls_private_key_file_path go together: give both"
        )
    return ConnectOptions(
        operation_timeout_seconds=given["operation_timeout_seconds"],
        connect_timeout_seconds=given["connection_timeout_ms"] / 1_000,
        credentials=given["authentication"],
        tls=_tls_layers(given) if tls else None,
    )


def _tls_layers(given: Mapping[str, Any]) -> Callable[[str], TlsLayer]:
    authentication, certificate = given["authentication"], None
    if isinstance(authentication, AuthenticationTLS):
        certificate = authentication.certificate_path, authentication.private_key_path
    elif given["tls_certificate_file_path"]:
        certificate = given["tls_certificate_file_path"], given["tls_private_key_file_path"]
    context = tls_context(
        given["tls_trust_certs_file_path"],
        certificate,
        allow_insecure=given["tls_allow_insecure_connection"],
        validate_hostname=given["tls_validate_hostname"],
    )
    return lambda host: TlsLayer(context, server_side=False, server_hostname=host)


def log_to(logger: logging.Logger) -> None:
    """Send all log records of this package to a logger, for the whole process."""
    ours = logging.getLogger(_LOGGER)
    if logger is not ours and not logger.name.startswith(f"{_LOGGER}."):
        ours.parent = logger
        ours.setLevel(logger.getEffectiveLevel())


def refuse_decryption(key_reader: object) -> None:
    """Raise an error if a consumer or reader is given decryption keys.

    Raises:
        OperationNotSupported: Keys are given.
    """
    if key_reader is not None:
        raise OperationNotSupported(
            "this client does not decrypt: leave crypto_key_reader out, or take encrypted messages "
            "as they are with crypto_failure_action=ConsumerCryptoFailureAction.CONSUME"
        )
