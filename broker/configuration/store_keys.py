"""The configuration key of the metadata store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.stores.store_url import (
    EXPECTED_STORES,
    OUR_STORES,
    usable_store_url,
    without_password,
)
from server.configuration.secret_sources import PLACES, KeySourceError, read_source

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys

DEFAULT_METADATA_STORE_URL = "memory:local"


class StoreUrl(str):
    """The URL of a store, shown without its password."""

    __slots__ = ()

    def __repr__(self) -> str:
        return repr(without_password(str(self)))


def metadata_store_url(checked: CheckedKeys) -> StoreUrl:
    """Return the store's URL: a bad one becomes a problem."""
    return StoreUrl(_chosen(checked))


def _chosen(checked: CheckedKeys) -> str:
    """Choose the store: by Floodgate's key, otherwise by upstream's key with a supported URL."""
    own_key = "floodgateMetadataStoreUrl"
    own = _stated(checked, own_key)
    upstream_key = next(
        (key for key in ("metadataStoreUrl", "zookeeperServers") if checked.text(key)),
        "metadataStoreUrl",
    )
    upstream = _stated(checked, upstream_key)
    if own:
        return _usable_store_url(checked, own_key, own)
    if upstream and upstream.lower().startswith(OUR_STORES):
        return _usable_store_url(checked, upstream_key, upstream)
    if upstream:
        checked.warn(
            f"{upstream_key}={without_password(upstream)}: this store is not supported, "
            f"topics live in {DEFAULT_METADATA_STORE_URL} and end with the process; "
            "floodgateMetadataStoreUrl=sqlite:///path keeps them"
        )
    return DEFAULT_METADATA_STORE_URL


def _stated(checked: CheckedKeys, key: str) -> str:
    """Return a store's URL, possibly read from a file or variable to protect its password."""
    given = checked.text(key) or ""
    if not given.startswith(PLACES):
        return given
    try:
        url = read_source(given).decode().strip()
    except (KeySourceError, UnicodeDecodeError) as error:
        reason = str(error) if isinstance(error, KeySourceError) else "it is no text"
    else:
        if usable_store_url(url):
            return url
        reason = f"what it names is none of {EXPECTED_STORES}"
    # The source's content is never shown: it may be a bare password.
    checked.refuse(f"{key}={given!r:.200}: {reason}")
    return DEFAULT_METADATA_STORE_URL


def _usable_store_url(checked: CheckedKeys, key: str, url: str) -> str:
    if not usable_store_url(url):
        checked.refuse(f"{key}={without_password(url)!r}: expected {EXPECTED_STORES}")
    return url
