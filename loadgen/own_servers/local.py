"""The settings of servers that are started for a run: on free ports of the loopback."""

from __future__ import annotations

_LOOPBACK = {
    "webServicePort": "0",
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "127.0.0.1",
}


def local_broker() -> dict[str, str]:
    """Return the settings a broker has in every run: it listens on free ports of the loopback."""
    return {"brokerServicePort": "0", "metadataStoreUrl": "memory:local", **_LOOPBACK}


def local_proxy(broker_service_url: str, broker_web_url: str) -> dict[str, str]:
    """Return the settings a proxy has in every run: its broker, and to listen as that does."""
    return {
        "servicePort": "0",
        "brokerServiceURL": broker_service_url,
        "brokerWebServiceURL": broker_web_url,
        **_LOOPBACK,
    }
