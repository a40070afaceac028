"""Validation of a client's arguments, and their conversion to connection options."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from client.arguments import check_arguments
from client.authentication.authentication import Authentication
from client.authentication.tls import AuthenticationTLS, tls_context
from client.connection.connect_options import ConnectOptions
from client.exceptions import InvalidConfiguration, OperationNotSupported
from proto.transport.tls import TlsLayer

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_LOGGER = __name__.rpartition(".")[0]
"""The logger above all loggers of the package."""


_TRUE_OR_FALSE = (bool, "True or False")
_KINDS: dict[str, tuple[Any, str]] = {
    "authentication": (Authentication | None, "an Authentication such as AuthenticationToken"),
    "logger": (logging.Logger | None, "a logging.Logger"),
    "tls_allow_insecure_connection": _TRUE_OR_FALSE,
    "tls_validate_hostname": _TRUE_OR_FALSE,
}


def connect_options(given: Mapping[str, Any], *, tls: bool) -> ConnectOptions:
    """Check the arguments of ``Client``, and return the options of its connections.

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
                f"{name} is 1: everything runs on the event loop, without threads"
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
    """Route the package's log records to a logger, for the whole process."""
    ours = logging.getLogger(_LOGGER)
    if logger is not ours and not logger.name.startswith(f"{_LOGGER}."):
        ours.parent = logger
        ours.setLevel(logger.getEffectiveLevel())


def refuse_decryption(key_reader: object) -> None:
    """Refuse the keys of a consumer or reader.

    Raises:
        OperationNotSupported: Keys are given.
    """
    if key_reader is not None:
        raise OperationNotSupported(
            "this client does not decrypt: leave crypto_key_reader out, or take encrypted messages "
            "as they are with crypto_failure_action=ConsumerCryptoFailureAction.CONSUME"
        )
