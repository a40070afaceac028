"""Warnings of keys for parts of Pulsar that Floodgate lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from server.configuration.known_keys import CheckedKeys

MISSING_PARTS: Mapping[str, str] = {
    "transactionCoordinatorEnabled": "there are no transactions here, they are refused",
    "functionsWorkerEnabled": "there are no functions, sources and sinks here, they are refused",
    "enablePackagesManagement": "there are no packages here, they are refused",
    "webSocketServiceEnabled": "WebSockets are not served here",
    "managedLedgerOffloadDriver": "nothing is offloaded here",
    "entryFilterNames": "there are no entry filters here, every entry is delivered",
    "brokerInterceptors": "Java's classes are not loaded here, nothing is intercepted",
    "brokerEntryMetadataInterceptors": "entries have no metadata of the broker here",
    "messagingProtocols": "no protocol but Pulsar's own is served here",
    "additionalServlets": "Java's classes are not loaded here, no servlet is added",
}
"""Keys, and the behaviour regardless of their values."""


def warn_of_missing_parts(checked: CheckedKeys) -> None:
    """Warn of each key that switches on a missing part."""
    for key, sentence in MISSING_PARTS.items():
        value = checked.value(key)
        if value:
            names = ",".join(value) if isinstance(value, tuple) else str(value)
            shown = names.lower() if value is True else names[:100]
            checked.warn(f"{key}={shown}: {sentence}")
