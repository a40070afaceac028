"""The effective value of every configuration key, as text; secrets are masked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from broker.configuration.config import known_keys
from broker.configuration.message_store_keys import FSYNC_KEY, MAX_KEY
from broker.configuration.publishing_keys import BUFFER_KEY
from broker.stores.store_url import OUR_STORES, without_password
from server.configuration.authentication import SECRET_KEY
from server.configuration.common import MEGABYTE_BYTES
from server.configuration.flow import (
    GRACE_KEY,
    MAX_UNWRITABLE_KEY,
    PAUSE_KEY,
    PENDING_OUTBOUND_KEY,
    RESPONSE_BYTES_KEY,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.configuration.config import BrokerConfig

MASK = "******"
_SECRET_IN_URL = re.compile(r"(://[^/?#]*?:)[^/?#]*@")


def runtime_values(config: BrokerConfig, dynamic: Mapping[str, str]) -> dict[str, str]:
    """Return every known key with its effective value.

    Args:
        config: The effective configuration.
        dynamic: The effective values set at run time.
    """
    chosen = _chosen_by_profile(config)

    def value(key: str, default: str | None) -> str:
        for text in (dynamic.get(key), config.given.get(key)):
            if text is not None and text.strip() not in ("", "null"):
                return text.strip()
        return chosen.get(key) or default or ""

    return {known.key: masked(known.key, value(known.key, known.default)) for known in known_keys()}


def masked(key: str, text: str) -> str:
    """Return a value with its secrets masked."""
    if text and SECRET_KEY.search(key):
        return MASK
    if text.lower().startswith(OUR_STORES):
        return without_password(text, MASK)
    return _SECRET_IN_URL.sub(rf"\1{MASK}@", text)


def _chosen_by_profile(config: BrokerConfig) -> dict[str, str]:
    """Return the values of keys not given that differ from upstream's defaults."""
    flow = config.flow
    return {
        "clusterName": config.cluster_name,
        "bindAddress": config.bind_address,
        "advertisedAddress": config.advertised_address,
        "floodgateProfile": config.profile.value,
        "floodgateAdmissionPolicy": config.admission.policy_name,
        "floodgateSizeEstimate": config.size_estimate.value,
        "floodgateResponseBuffers": config.response_buffers.value,
        "brokerDeleteInactiveTopicsEnabled": str(config.policies.inactive_topics.delete).lower(),
        BUFFER_KEY: str(config.publishing.buffer_bytes // MEGABYTE_BYTES),
        MAX_KEY: str(config.message_store.max_bytes // MEGABYTE_BYTES),
        FSYNC_KEY: str(config.message_store.fsync).lower(),
        PAUSE_KEY: str(flow.rules.pause_if_unwritable).lower(),
        GRACE_KEY: str(round(flow.slow_peers.grace_seconds * 1000)),
        MAX_UNWRITABLE_KEY: str(round(flow.slow_peers.max_unwritable_seconds)),
        RESPONSE_BYTES_KEY: str(flow.rules.max_response_bytes),
        PENDING_OUTBOUND_KEY: str(flow.max_pending_outbound_bytes // MEGABYTE_BYTES),
    }
