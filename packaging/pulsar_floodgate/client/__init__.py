"""The client library's names, in the servers' package too: the same classes."""

import client as _client
from client import *  # noqa: F403


def __getattr__(name: str) -> object:
    """Return a name that is imported on first use."""
    return getattr(_client, name)
