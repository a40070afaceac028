"""The bounds of what one message, and one connection, may publish."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from server.configuration.common import Profile

if TYPE_CHECKING:
    from broker.configuration.config import BrokerConfig


class PublishRules(NamedTuple):
    """The bounds.

    Attributes:
        max_payload_bytes: maxMessageSize, compared with each payload; 0: only the limit of frames
            counts, as on a real broker (profile pulsar).
        max_producers_being_made: PRODUCER requests of one connection that may be under way.
    """

    max_payload_bytes: int = 0
    max_producers_being_made: int = 10_000

    @staticmethod
    def of(config: BrokerConfig) -> PublishRules:
        """Return the bounds of a configuration."""
        pulsar = config.profile is Profile.PULSAR
        return PublishRules(max_payload_bytes=0 if pulsar else config.max_message_size)
