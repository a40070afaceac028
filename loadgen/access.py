"""Loadgen's credentials and trusted certificates, whose sources are environment variables.

``loadgen --auth-params`` sets these variables, so that tasks in other processes inherit them.
"""

from __future__ import annotations

import os
import tempfile
import urllib.request
from contextlib import ExitStack, contextmanager
from typing import IO, TYPE_CHECKING
from unittest.mock import patch

from client.admin.credentials import web_tls
from client.admin.errors import AdminError
from client.authentication.access import PLUGIN_VARIABLE, TRUST_VARIABLE, Access
from client.authentication.tls import AuthenticationTLS, tls_context
from client.exceptions import PulsarException
from loadgen.errors import UsageError

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Mapping

    from client.admin.pulsar_admin import PulsarAdmin
    from client.authentication.authentication import Authentication


@contextmanager
def _refusing() -> Iterator[None]:
    """Convert errors about credentials and certificates in a ``with`` block to UsageError."""
    try:
        yield
    except (PulsarException, AdminError) as error:
        raise UsageError(str(error)) from None


def name_access(plugin: str | None, params: str | None, trust: str | None) -> None:
    """Write the command line's credentials into the environment of this process and its children.

    Raises:
        UsageError: An option contains the secret itself, not its source, or the plug-in is unknown.
    """
    with _refusing():
        variables = Access(plugin or "", params or "", trust or "").variables()
    if params:
        os.environ.pop(PLUGIN_VARIABLE, None)
    os.environ.update(variables)


def carried_access() -> dict[str, str]:
    """Return the contents of this process's credential and certificate files.

    The driver sends the contents to tasks on hosts that do not have these files.

    Raises:
        UsageError: A file cannot be read.
    """
    with _refusing():
        return Access.named_in(os.environ).contents()


@contextmanager
def access_taken(contents: Mapping[str, str]) -> Iterator[None]:
    """Use credentials that another host sent, for the length of a ``with`` block.

    The credentials are in temporary files that only this process can read. On a system with
    in-memory files (``memfd_create``), a killed task leaves no files behind.
    """
    with ExitStack() as stack:

        def kept(text: str) -> str:
            file: IO[str]
            if hasattr(os, "memfd_create"):
                file = os.fdopen(os.memfd_create("access"), "w")
                path = f"/proc/self/fd/{file.fileno()}"
            else:
                file = tempfile.NamedTemporaryFile("w")  # noqa: SIM115 - the stack closes it
                path = file.name
            stack.enter_context(file)
            file.write(text)
            file.flush()
            return path

        with patch.dict(os.environ, Access.from_contents(contents, kept).variables()):
            yield


def own_credentials() -> Authentication | None:
    """Return this process's credentials for servers; None if none are configured.

    Raises:
        UsageError: The credentials cannot be read.
    """
    with _refusing():
        return Access.named_in(os.environ).authentication()


def own_tls() -> ssl.SSLContext:
    """Return the TLS context for connections to the servers' binary ports.

    It trusts the configured certificates, presents the client's own, and checks host names.

    Raises:
        UsageError: A file cannot be used.
    """
    own = own_credentials()
    pair = None
    if isinstance(own, AuthenticationTLS):
        pair = own.certificate_path, own.private_key_path
    with _refusing():
        return tls_context(_trusted(), pair, allow_insecure=False, validate_hostname=True)


def admin_of(url: str, seconds: float) -> PulsarAdmin:
    """Return a client for the admin REST API at a URL.

    Raises:
        AdminError: The address is invalid, or a file of certificates cannot be used.
        UsageError: The credentials cannot be read.
    """
    from client.admin.pulsar_admin import PulsarAdmin

    return PulsarAdmin(url, seconds, own_credentials(), _trusted())


class WebPages:
    """A blocking HTTP client that reads pages from the servers' web ports.

    Raises:
        UsageError: The credentials cannot be read, or a file of certificates cannot be used.
    """

    def __init__(self) -> None:
        self._credentials = own_credentials()
        with _refusing():
            tls = web_tls(self._credentials, _trusted())
        # Requests to the watched servers bypass the environment's HTTP proxy.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)
        )

    def read(self, url: str, seconds: float, most_bytes: int) -> str:
        """Return the text of the page at a URL, at most ``most_bytes`` long.

        Raises:
            OSError: The server did not answer, or answered with an error status.
            ValueError: The address is invalid.
            HTTPException: The answer is not HTTP.
        """
        request = urllib.request.Request(url)
        try:
            headers = self._credentials.http_headers() if self._credentials else {}
        except PulsarException as error:
            raise OSError(str(error)) from None
        for name, value in headers.items():
            request.add_unredirected_header(name, value)
        with self._opener.open(request, timeout=seconds) as response:
            return str(response.read(most_bytes).decode(errors="replace"))


def _trusted() -> str | None:
    return os.environ.get(TRUST_VARIABLE) or None
