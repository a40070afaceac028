"""The one error of authentication."""

from __future__ import annotations


class AuthenticationError(Exception):
    """The credentials do not prove who the peer is.

    The reason is for the log. The peer is told "Failed to authenticate" and no more, as a real
    broker tells it: whoever guesses learns nothing.

    Attributes:
        reason: One sentence, without any part of a credential.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
