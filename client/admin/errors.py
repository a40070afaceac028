"""Errors of the admin client.

AdminError
    AdminUrlError           the address is no web address
    AdminCredentialsError   our own credentials cannot be read, or must not be shown
    AdminUnreachableError   nobody answers there
    AdminTlsError           it is no TLS there, or nobody whom we trust
    AdminDisconnectedError  the connection broke while an answer was read
    AdminTimeoutError       no byte came in time
    AdminRefusedError       the server answered with an error
    AdminAnswerError        the server answered something that is not the admin REST
"""

from __future__ import annotations


class AdminError(Exception):
    """Root of the admin client's errors; ``str()`` is one sentence for people."""


class AdminUrlError(AdminError):
    """The address is no web address."""


class AdminCredentialsError(AdminError):
    """Our own credentials cannot be read or used, or must not be shown."""


class AdminUnreachableError(AdminError):
    """The server cannot be reached."""


class AdminTlsError(AdminError):
    """The server at an https address does not speak TLS, or its certificate is not trusted."""


class AdminDisconnectedError(AdminError):
    """The connection broke before the answer was whole."""


class AdminTimeoutError(AdminError):
    """The server sent nothing for as long as a request may wait."""


class AdminRefusedError(AdminError):
    """The server answered with an error.

    Attributes:
        status: The HTTP status, 400 or more.
        reason: The server's own words.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason} (HTTP {self.status})"


class AdminAnswerError(AdminError):
    """The answer is none of the admin REST; the text says what came."""
