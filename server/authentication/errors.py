"""The one error of authentication."""

from __future__ import annotations


class AuthenticationError(Exception):
    """The credentials do not prove who the peer is.

    The reason is for the log. The peer is told "Failed to authenticate" and no more, as a real
    broker tells it: whoever guesses learns nothing.

    Attributes:
        reason: One sentence, without any part of a credential.
        code: Upstream's word for it in metrics; empty: nobody's credentials were judged.
    """

    def __init__(self, reason: str, code: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


class ExpiredError(AuthenticationError):
    """The credentials were good once."""
