"""HTTP client for a broker's admin REST API, with streamed lists and readable errors."""

from __future__ import annotations

import errno
import json
import os
import re
import ssl
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from client.admin.credentials import ShowCredentials, web_tls
from client.admin.errors import (
    AdminAnswerError,
    AdminDisconnectedError,
    AdminRefusedError,
    AdminTimeoutError,
    AdminTlsError,
    AdminUnreachableError,
)
from client.admin.url import REQUEST_TIMEOUT_SECONDS, checked_url, shown_url
from limiter.extras import extra

with extra("admin"):
    import aiohttp
    from yarl import URL

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    from client.authentication.authentication import Authentication

    NameBatches = AsyncGenerator[list[str], None]

MAX_STRING_BYTES = 1024 * 1024
"""Maximum size of a name in bytes; a response with a longer string is refused."""

_ESCAPED = re.compile(rb"\\.", re.DOTALL)
_QUOTE = b'"'


class StringArray:
    """A streaming decoder of a JSON array of strings, which buffers an incomplete string.

    Each received piece is cut after its last complete string, and the JSON decoder decodes it up to
    the cut in a single call, without work per name in Python. The parity of the number of quotes
    tells opening from closing quotes: a piece always starts outside of strings.
    """

    def __init__(self) -> None:
        self._rest = b""
        self._begun = False

    def feed(self, data: bytes) -> list[str]:
        """Decode the next received bytes; return the strings that they complete.

        Raises:
            AdminAnswerError: The response is not an array of strings.
        """
        pending = self._rest + data
        end = _end_of_last_string(pending)
        whole, self._rest = pending[:end], pending[end:]
        if len(self._rest) > MAX_STRING_BYTES:
            raise AdminAnswerError(f"the response has a name of more than {MAX_STRING_BYTES} bytes")
        return self._decoded(whole.lstrip()) if whole else []

    def close(self) -> None:
        """Check that the received array ended with its closing bracket.

        Raises:
            AdminAnswerError: The array is incomplete.
        """
        expected = b"]" if self._begun else b"[]"
        if b"".join(self._rest.split()) != expected:
            raise AdminAnswerError(_no_list(self._rest, begun=self._begun))

    def _decoded(self, whole: bytes) -> list[str]:
        if whole[:1] != (b"," if self._begun else b"["):
            raise AdminAnswerError(_no_list(whole, begun=self._begun))
        try:
            names = json.loads(b"[" + whole[1:] + b"]")
        except (ValueError, RecursionError):
            raise AdminAnswerError(_no_list(whole, begun=self._begun)) from None
        if set(map(type, names)) != {str}:
            raise AdminAnswerError(_no_list(whole, begun=self._begun))
        self._begun = True
        return list(names)


def _end_of_last_string(data: bytes) -> int:
    """Return the offset after the last complete JSON string in some bytes; 0 if there is none."""
    # Mask escaped quotes, keeping the length.
    masked = _ESCAPED.sub(b"__", data) if b"\\" in data else data
    last = masked.rfind(_QUOTE)
    if masked.count(_QUOTE) % 2:
        last = masked.rfind(_QUOTE, 0, last)
    return last + 1


def _no_list(data: bytes, *, begun: bool) -> str:
    shown = data[:60].decode("utf-8", "replace")
    if begun:
        return f"the list of names broke off or is malformed at {shown!r}"
    return f"the answer is no list of names but begins with {shown!r}"


CONNECT_TIMEOUT_SECONDS = 10.0
MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""Maximum size in bytes of a buffered response; lists of names are streamed without a limit."""
JSON_TYPE = "application/json"
HEADER_PREFIX = "X-Pulsar-"
"""Prefix of the HTTP headers that describe a message."""
NOT_SERVED = "the server does not serve"
"""Beginning of the reason in errors for which the server gives no reason."""

_FIRST_ERROR = 400
_BODILESS = ("GET", "DELETE")
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE")
"""OpenSSL's errors if the server does not speak TLS, in all of OpenSSL's versions."""
_READ_BYTES = 256 * 1024
_SHOWN_CHARACTERS = 60


@dataclass(frozen=True, slots=True)
class Body:
    """The JSON body of a request, with its media type."""

    value: object
    media_type: str = JSON_TYPE


class AdminRest:
    """A client for the paths below ``/admin/v2`` and ``/lookup/v2`` of a broker.

    Args:
        url: ``http://host:port`` of a broker's web port, with or without a path before ``/admin``.
        request_timeout_seconds: Longest time to wait for the next byte of a response.
        authentication: Credentials for every request.
        tls_trust_certs_file_path: Trusted CA certificates; None for the defaults.

    Raises:
        AdminUrlError: The address is not a web address.
        AdminCredentialsError: A certificate file is unusable.
    """

    def __init__(
        self,
        url: str,
        request_timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
        authentication: Authentication | None = None,
        tls_trust_certs_file_path: str | None = None,
    ) -> None:
        self._url = checked_url(url)
        encrypted = self._url.startswith("https")
        self._steps = (
            [ShowCredentials(authentication, encrypted=encrypted)] if authentication else []
        )
        self._tls = web_tls(authentication, tls_trust_certs_file_path)
        self._shown = shown_url(self._url)
        self._timeout_seconds = request_timeout_seconds
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        # No total timeout: a person may page through a million names at leisure.
        timeout = aiohttp.ClientTimeout(
            total=None,
            sock_connect=min(CONNECT_TIMEOUT_SECONDS, self._timeout_seconds),
            sock_read=self._timeout_seconds,
        )
        # No limit of connections: callers bound their concurrent calls.
        connector = aiohttp.TCPConnector(limit=0, ssl=self._tls or True)
        self._session = aiohttp.ClientSession(
            timeout=timeout, connector=connector, middlewares=self._steps
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def text(self, method: str, path: str, body: Body | None = None) -> str:
        """Send a request, and return the text of the response.

        Args:
            method: The HTTP method.
            path: Percent-encoded path and query of the URL, starting with ``/admin`` or
                ``/lookup``.
            body: The request's body.

        Raises:
            AdminError: The server refused, or was unreachable or too slow; or its response is too
                large.
        """
        async with self._answer(method, path, body) as response:
            return await _whole(response)

    async def mapping(
        self, path: str, method: str = "GET", body: Body | None = None
    ) -> dict[str, Any]:
        """Send a request, and return the JSON object in the response.

        Raises:
            AdminError: The server refused, or was unreachable or too slow; or sent no JSON object.
        """
        text = await self.text(method, path, body)
        try:
            # Pulsar's answer is empty for some unset values.
            found = json.loads(text) if text else {}
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise self._not_understood(path, text)
        return found

    async def value(self, method: str, path: str, body: Body | None = None) -> object:
        """Send a request, and return the JSON value in the response; None if it is empty.

        Raises:
            AdminError: The server refused, or was unreachable or too slow; or sent no JSON.
        """
        text = await self.text(method, path, body)
        try:
            return json.loads(text) if text else None
        except (ValueError, RecursionError):
            raise self._not_understood(path, text) from None

    async def message(self, path: str) -> dict[str, Any]:
        """Return a message fetched with GET, as its payload (text) and Pulsar's HTTP headers.

        Raises:
            AdminError: The server refused, or was unreachable or too slow; or its response is too
                large.
        """
        async with self._answer("GET", path) as response:
            headers = {
                name.removeprefix(HEADER_PREFIX): text
                for name, text in response.headers.items()
                if name.startswith(HEADER_PREFIX)
            }
            return {**headers, "payload": await _whole(response)}

    async def strings(self, path: str) -> list[str]:
        """Return a short JSON array of strings fetched with GET.

        Raises:
            AdminError: The server refused, or was unreachable or too slow; or sent no list of
                strings.
        """
        return [name async for batch in self.names([path]) for name in batch]

    async def names(self, paths: Sequence[str]) -> NameBatches:
        """Yield the names in several lists, one list after another, while they are received.

        All lists are requested before the first name is yielded, so that a refused request fails
        before any output.

        Raises:
            AdminError: The server refused, or was unreachable or too slow; or sent no list of
                strings.
        """
        async with AsyncExitStack() as open_answers:
            answers = [
                await open_answers.enter_async_context(self._answer("GET", path)) for path in paths
            ]
            for answer in answers:
                decoder = StringArray()
                async for data in answer.content.iter_chunked(_READ_BYTES):
                    if batch := decoder.feed(data):
                        yield batch
                decoder.close()

    @asynccontextmanager
    async def _answer(
        self, method: str, path: str, body: Body | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Send a request, and yield its successful response.

        Errors in the block that reads the response become AdminError.
        """
        if self._session is None:
            raise RuntimeError("use `async with` before calls")
        data = None if body is None else json.dumps(body.value)
        # Servers demand a type for calls with side effects, even without a body.
        media_type = JSON_TYPE if body is None else body.media_type
        headers = {} if body is None and method in _BODILESS else {"Content-Type": media_type}
        url = URL(f"{self._url}{path}", encoded=True)
        try:
            async with self._session.request(method, url, data=data, headers=headers) as answer:
                if answer.status >= _FIRST_ERROR:
                    raise AdminRefusedError(answer.status, reason_of(await _whole(answer), path))
                yield answer
        except TimeoutError:
            raise AdminTimeoutError(self._silent()) from None
        except (aiohttp.ClientConnectorSSLError, aiohttp.ClientConnectorCertificateError) as error:
            raise AdminTlsError(f"{self._shown}: {_tls_cause(error)}") from None
        except aiohttp.ClientConnectorError as error:
            raise AdminUnreachableError(
                f"{self._shown} cannot be reached ({_cause(error)})"
            ) from None
        except aiohttp.ClientError as error:
            raise AdminDisconnectedError(f"{self._shown} broke off ({_cause(error)})") from None

    def _silent(self) -> str:
        return (
            f"{self._shown} sent nothing for {self._timeout_seconds:g} s: "
            "is it busy, or no admin REST? --request-timeout waits longer"
        )

    def _not_understood(self, path: str, text: str) -> AdminAnswerError:
        return AdminAnswerError(
            f"{self._shown}{path} answered {text[:_SHOWN_CHARACTERS]!r}, which is not what the "
            "admin REST answers"
        )


class AdminRequests:
    """A group of admin requests; every method raises AdminError if its request fails."""

    def __init__(self, rest: AdminRest) -> None:
        self._rest = rest


def _cause(error: aiohttp.ClientError) -> str:
    """Return the operating system's text for a failed connection, or else the error's own text."""
    cause = getattr(error, "os_error", None)
    if not isinstance(cause, OSError):
        return str(error) or type(error).__name__
    known = cause.errno is not None and cause.errno in errno.errorcode
    words = os.strerror(cause.errno or 0) if known else str(cause.strerror or cause)
    return words or type(cause).__name__


def _tls_cause(error: aiohttp.ClientConnectorError) -> str:
    """Return why a TLS handshake failed, with a hint to the user.

    TLS errors have numbers of their own: the operating system's texts for these numbers do not
    apply.
    """
    cause = error.os_error
    if getattr(cause, "reason", None) in _NO_TLS:
        return "the server there does not speak TLS; write http:// for its plain web port"
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"the server's certificate is not trusted ({cause.verify_message}); "
            "--tls-trust-certs-file-path or SSL_CERT_FILE names a file of authorities to trust"
        )
    return f"TLS was not agreed upon ({cause.strerror or cause})"


async def _whole(answer: aiohttp.ClientResponse) -> str:
    parts, size = [], 0
    async for data in answer.content.iter_chunked(_READ_BYTES):
        parts.append(data)
        size += len(data)
        if size > MAX_ANSWER_BYTES:
            raise AdminAnswerError(f"the answer is larger than {MAX_ANSWER_BYTES} bytes")
    return b"".join(parts).decode("utf-8", "replace")


def reason_of(text: str, path: str) -> str:
    """Return the reason in a server's error response, or the first line of its plain text.

    Pulsar answers ``{"reason": ...}``; its web server answers unknown paths with an HTML page.
    """
    try:
        reason = json.loads(text)["reason"]
    except (ValueError, KeyError, TypeError, RecursionError):
        reason = text.strip().partition("\n")[0]
    if not reason or str(reason).startswith("<"):
        return f"{NOT_SERVED} {path.partition('?')[0]}"
    return str(reason)
