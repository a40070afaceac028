"""Reasons for a consumer's waiting, as named in statistics."""

from __future__ import annotations

from enum import StrEnum


class Waits(StrEnum):
    """A consumer's reason for waiting."""

    NOTHING_LEFT = "the subscription has no message left to deliver"
    PERMITS = "its client has no room for messages: it gave no permits"
    ACKNOWLEDGEMENTS = "it has as many unacknowledged messages as one consumer may have"
    WRITABLE = "its client does not read what it was sent"
    SUBSCRIPTION = "the subscription has as many unacknowledged messages as it may have"
    RATE = "the dispatch rate is used up"
    STORE = "messages are being read from the store"
    DELAY = "all messages left are delayed"
    ACTIVE_CONSUMER = "another consumer is the active one"
    DRAINING = "another consumer has unacknowledged messages of its keys"
    OTHER_KEYS = "all messages left have keys of other consumers"
    LOOK_AHEAD = "too many messages of other keys wait before its own"
