"""The configuration keys of watches."""

from __future__ import annotations

from server.configuration.settings import Key, Settings


class WatchSettings(Settings):
    """Bounds of watches; 0 is unlimited. Upstream's watches are not charged."""

    max_bytes: int = Key("floodgateTopicWatchMaxBytes", floodgate=256 << 20, pulsar=0)
    """Most memory of watches."""
