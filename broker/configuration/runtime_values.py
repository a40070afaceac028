"""The effective value of every configuration key, as text; secrets are masked."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from broker.configuration.config import known_keys
from broker.stores.store_url import OUR_STORES, without_password
from server.configuration.authentication import SECRET_KEY

if TYPE_CHECKING:
    from collections.abc import Mapping

    from broker.configuration.config import BrokerConfig

MASK = "******"
_SECRET_IN_URL = re.compile(r"(://[^/?#]*?:)[^/?#]*@")


def runtime_values(config: BrokerConfig, dynamic: Mapping[str, str]) -> dict[str, str]:
    """Return every known key with its effective value.

    Args:
        config: The configuration at the start.
        dynamic: The effective values set at run time.
    """

    def value(key: str) -> str:
        text = dynamic.get(key, "").strip()
        return text if text not in ("", "null") else config.keys.as_given(key)

    return {known.key: masked(known.key, value(known.key)) for known in known_keys()}


def masked(key: str, text: str) -> str:
    """Return a value with its secrets masked."""
    if text and SECRET_KEY.search(key):
        return MASK
    if text.lower().startswith(OUR_STORES):
        return without_password(text, MASK)
    return _SECRET_IN_URL.sub(rf"\1{MASK}@", text)
