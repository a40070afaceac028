"""Errors of authentication."""

from __future__ import annotations


class AuthenticationError(Exception):
    """The credentials do not prove the peer's identity.

    The reason is for the log. The peer receives only "Failed to authenticate", as from a real
    broker, so that guessing reveals nothing.

    Attributes:
        reason: A sentence, without any part of a credential.
        code: Upstream's error code in metrics; empty if no credentials were checked.
    """

    def __init__(self, reason: str, code: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code


class ExpiredError(AuthenticationError):
    """The credentials have expired."""
