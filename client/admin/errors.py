"""Errors that the admin client raises.

AdminError
    AdminUrlError           the address is not a web address
    AdminCredentialsError   our own credentials are unreadable, or must not be sent
    AdminUnreachableError   the server cannot be reached
    AdminTlsError           the server does not speak TLS, or is not trusted
    AdminDisconnectedError  the connection broke while an answer was read
    AdminTimeoutError       the server sent nothing within the timeout
    AdminRefusedError       the server answered with an error
    AdminAnswerError        the response is not valid for the admin REST API
"""

from __future__ import annotations


class AdminError(Exception):
    """Base class of the admin client's errors.

    ``str()`` is a sentence that users can read.
    """


class AdminUrlError(AdminError):
    """The given address is not an http or https URL."""


class AdminCredentialsError(AdminError):
    """The client's credentials are unreadable or unusable, or must not be sent to this server."""


class AdminUnreachableError(AdminError):
    """No connection to the server could be opened."""


class AdminTlsError(AdminError):
    """The server at an https address does not speak TLS, or its certificate is not trusted."""


class AdminDisconnectedError(AdminError):
    """The connection to the server broke before its response was complete."""


class AdminTimeoutError(AdminError):
    """The server sent no byte of its response within the request timeout."""


class AdminRefusedError(AdminError):
    """The server answered a request with an HTTP error.

    Attributes:
        status: The HTTP status, 400 or more.
        reason: The reason in the server's response.
    """

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)
        self.status = status
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.reason} (HTTP {self.status})"


class AdminAnswerError(AdminError):
    """The server's response is not valid for the admin REST API.

    The error's text quotes the response.
    """
