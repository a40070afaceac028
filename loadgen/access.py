"""The credentials with which loadgen asks servers, and whom it trusts: named by the environment.

``loadgen --auth-params`` puts the names there, so that tasks in other processes find them too.
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
    """Make errors of credentials and certificates the user's."""
    try:
        yield
    except (PulsarException, AdminError) as error:
        raise UsageError(str(error)) from None


def name_access(plugin: str | None, params: str | None, trust: str | None) -> None:
    """Take options into the environment of this process and of those that it starts.

    Raises:
        UsageError: They are the secret itself, or of no plug-in that there is.
    """
    with _refusing():
        variables = Access(plugin or "", params or "", trust or "").variables()
    if params:
        os.environ.pop(PLUGIN_VARIABLE, None)
    os.environ.update(variables)


def carried_access() -> dict[str, str]:
    """Return the credentials themselves, and trusted certificates, for a host without their files.

    Raises:
        UsageError: They cannot be read.
    """
    with _refusing():
        return Access.named_in(os.environ).contents()


@contextmanager
def access_taken(contents: Mapping[str, str]) -> Iterator[None]:
    """Use credentials of another host for a block, in files that nobody else reads.

    A task that is killed leaves none of them behind, where the system has files in memory.
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
    """Return what is shown to servers; None for nothing.

    Raises:
        UsageError: It cannot be read.
    """
    with _refusing():
        return Access.named_in(os.environ).authentication()


def own_tls() -> ssl.SSLContext:
    """Return whom binary connections by TLS trust, and the own certificate; names are checked.

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
    """Return the admin REST of an address.

    Raises:
        AdminError: The address is none, or a file of certificates cannot be used.
        UsageError: The credentials cannot be read.
    """
    from client.admin.pulsar_admin import PulsarAdmin

    return PulsarAdmin(url, seconds, own_credentials(), _trusted())


class WebPages:
    """Pages of servers' web ports, read by a thread that waits for them.

    Raises:
        UsageError: The credentials cannot be read, or a file of certificates cannot be used.
    """

    def __init__(self) -> None:
        self._credentials = own_credentials()
        with _refusing():
            tls = web_tls(self._credentials, _trusted())
        # The environment's HTTP proxy has nothing to do with a server that is watched here.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)
        )

    def read(self, url: str, seconds: float, most_bytes: int) -> str:
        """Return a page.

        Raises:
            OSError: It does not come, or is refused.
            ValueError: The address is none.
            HTTPException: The answer is no HTTP.
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
