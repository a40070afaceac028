"""Validation of a client's arguments, and their conversion to connection options."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from client.authentication.authentication import Authentication
from client.authentication.tls import AuthenticationTLS, tls_context
from client.connection.connect_options import ConnectOptions
from client.exceptions import InvalidConfiguration, OperationNotSupported
from client.messages.enums import check_choices
from proto.transport.tls import TlsLayer

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.connection.service_url import ServiceInfo

_LOGGER = __name__.rpartition(".")[0]
"""The logger above all loggers of the package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientOptions:
    """The official client's arguments; see client.client.Client.

    Raises:
        InvalidConfiguration: A value has the wrong type, or is out of range.
        OperationNotSupported: A value requests an unsupported feature.
    """

    service: ServiceInfo
    operation_timeout_seconds: float
    io_threads: int
    message_listener_threads: int
    concurrent_lookup_requests: int
    stats_interval_in_seconds: int
    tls_allow_insecure_connection: bool
    tls_validate_hostname: bool
    logger: logging.Logger | None
    connection_timeout_ms: int
    tls_private_key_file_path: str | None
    tls_certificate_file_path: str | None
    listener_name: str | None
    memory_limit_bytes: int

    def __post_init__(self) -> None:
        check_choices(self)
        for name, least in _LEAST.items():
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int | float) or number < least:
                raise InvalidConfiguration(
                    f"{name} is a number from {least} on, not {number!r:.50}"
                )
        for name, value, kind, words in (
            (
                "authentication",
                self.service.authentication,
                Authentication | None,
                "an Authentication such as AuthenticationToken",
            ),
            ("logger", self.logger, logging.Logger | None, "a logging.Logger"),
            (
                "tls_allow_insecure_connection",
                self.tls_allow_insecure_connection,
                bool,
                "True or False",
            ),
            ("tls_validate_hostname", self.tls_validate_hostname, bool, "True or False"),
        ):
            if not isinstance(value, kind):
                raise InvalidConfiguration(f"{name} is {words}, not {type(value).__name__}")
        for name in ("io_threads", "message_listener_threads"):
            if getattr(self, name) != 1:
                raise OperationNotSupported(
                    f"{name} is 1: everything runs on the event loop, without threads"
                )
        if bool(self.tls_certificate_file_path) != bool(self.tls_private_key_file_path):
            raise InvalidConfiguration(
                "tls_certificate_file_path and tls_private_key_file_path go together: give both"
            )

    def connect_options(self) -> ConnectOptions:
        """Return the options of connections.

        Raises:
            InvalidConfiguration: A certificate file is unusable.
        """
        return ConnectOptions(
            operation_timeout_seconds=self.operation_timeout_seconds,
            connect_timeout_seconds=self.connection_timeout_ms / 1_000,
            credentials=self.service.authentication,
            tls=self._tls_layers() if self.service.use_tls else None,
        )

    def _tls_layers(self) -> Callable[[str], TlsLayer]:
        context = tls_context(
            self.service.tls_trust_certs_file_path,
            self._certificate(),
            allow_insecure=self.tls_allow_insecure_connection,
            validate_hostname=self.tls_validate_hostname,
        )
        return lambda host: TlsLayer(context, server_side=False, server_hostname=host)

    def _certificate(self) -> tuple[str, str] | None:
        authentication = self.service.authentication
        if isinstance(authentication, AuthenticationTLS):
            return authentication.certificate_path, authentication.private_key_path
        if self.tls_certificate_file_path and self.tls_private_key_file_path:
            return self.tls_certificate_file_path, self.tls_private_key_file_path
        return None


_LEAST = {
    "operation_timeout_seconds": 0,
    "connection_timeout_ms": 1,
    "concurrent_lookup_requests": 1,
    "stats_interval_in_seconds": 0,
}


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
