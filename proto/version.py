"""Names and versions that Floodgate sends to peers.

The version in pyproject.toml is the same.
"""

from __future__ import annotations

VERSION = "0.2.0"
PROTOCOL_VERSION = 21
"""Newest protocol version of broker and proxy."""
FLOODGATE_VERSION = f"Floodgate-{VERSION}"
"""The broker's version in the admin REST, and the client's in CONNECT."""
SERVER_VERSION = f"Pulsar Server-{FLOODGATE_VERSION}"
"""The broker's version in CONNECTED."""
PROXY_VERSION = f"Floodgate-proxy-{VERSION}"
"""The proxy's version in its CONNECT to brokers."""
