"""What Floodgate calls itself to its peers; the version is that of pyproject.toml."""

from __future__ import annotations

VERSION = "0.1.0"
FLOODGATE_VERSION = f"Floodgate-{VERSION}"
"""The broker's version in the admin REST, and the client's in CONNECT."""
SERVER_VERSION = f"Pulsar Server-{FLOODGATE_VERSION}"
"""What CONNECTED says."""
PROXY_VERSION = f"Floodgate-proxy-{VERSION}"
"""What a proxy says to brokers."""
