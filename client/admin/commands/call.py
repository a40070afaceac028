"""Runs one command of ``floodgate-admin``: connects to the server, and reports errors.

No exception of a server or network leaves this module: each becomes a single sentence on
standard error, and exit status 1.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar

import typer

from client.admin.commands.output import Output, nobody_need_read, printable
from client.admin.errors import (
    AdminCredentialsError,
    AdminError,
    AdminRefusedError,
    AdminUnreachableError,
    AdminUrlError,
)
from client.admin.url import shown_url

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from client.admin.pulsar_admin import PulsarAdmin
    from client.admin.rest import AdminRest
    from client.authentication.authentication import Authentication

Server = TypeVar("Server", "PulsarAdmin", "AdminRest")
PROGRAM = "floodgate-admin"
EXIT_FAILED = 1
EXIT_USAGE = 2
_OF_THE_USER = (AdminUrlError, AdminCredentialsError)
_REMEDIES = (
    (401, "Authentication required",
     "show credentials: --auth-params file:///path of a token, or FLOODGATE_AUTH_PARAMS"),
    (404, "Tenant", "`floodgate-admin tenants list` shows what there is"),
    (404, "Namespace", "`floodgate-admin namespaces list TENANT` shows what there is"),
    (404, "Partitioned Topic ",
     "`floodgate-admin topics list-partitioned-topics NAMESPACE` shows what there is"),
    (404, "Subscription ", "`floodgate-admin topics subscriptions TOPIC` shows what there is"),
    (404, "Topic ", "`floodgate-admin topics list NAMESPACE` shows what there is"),
    (405, "Peek messages on a partitioned", "name one of its partitions: TOPIC-partition-0"),
    (405, "Termination of a partitioned", "`floodgate-admin topics partitioned-terminate` does it"),
    (404, "does not serve /admin/v2/floodgate", "only a Floodgate broker has it"),
    (404, "does not serve", "is --admin-url the web port of a broker?"),
    (405, "deletion of namespaces", "forceDeleteNamespaceAllowed=true allows it"),
    (405, "deletion of tenants", "forceDeleteTenantAllowed=true allows it"),
    (409, "non empty namespace", "delete its topics first"),
    (409, "active namespaces", "delete them first"),
    (412, "non-dynamic configuration",
     "`floodgate-admin brokers list-dynamic-config` shows the keys that can change"),
)  # fmt: skip
"""Hints to add to error responses: HTTP status, part of the server's reason, hint."""


class Shown(NamedTuple):
    """The location of a command's credentials, from its options or environment variables.

    Attributes:
        plugin: ``token``, ``basic`` or ``tls``; if empty, ``token``.
        params: Location of the credentials, such as a file; if empty, no credentials are sent.
        trust_certs_file_path: File of trusted CA certificates; if empty, the system's are trusted.
    """

    plugin: str = ""
    params: str = ""
    trust_certs_file_path: str = ""

    def over(self, before: Shown) -> Shown:
        """Return a copy whose empty fields are filled with the values in ``before``."""
        own = self if self.params or self.plugin else before
        return Shown(
            own.plugin, own.params, self.trust_certs_file_path or before.trust_certs_file_path
        )

    def credentials(self) -> tuple[Authentication | None, str | None]:
        """Return the credentials, and the path of the file with trusted CA certificates.

        Raises:
            AdminCredentialsError: The credentials are unreadable, or appear on the command line
                themselves.
        """
        from client.authentication.access import Access
        from client.exceptions import PulsarException

        try:
            return Access(*self).authentication(), self.trust_certs_file_path or None
        except PulsarException as error:
            raise AdminCredentialsError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Call:
    """The options common to all commands: the server's address, output format and credentials."""

    admin_url: str
    as_json: bool
    request_timeout_seconds: float
    shown: Shown = field(default_factory=Shown)

    def then(self, given: Mapping[str, Any]) -> Call:
        """Return these options overridden by the options written after the command's name."""
        names = ("auth_plugin", "auth_params", "tls_trust_certs")
        return Call(
            given["admin_url"] or self.admin_url,
            given["as_json"] or self.as_json,
            given["request_timeout"] or self.request_timeout_seconds,
            Shown(*(given[name] or "" for name in names)).over(self.shown),
        )

    def change(
        self,
        asked: str,
        done: str,
        work: Callable[[PulsarAdmin], Awaitable[object]],
        **details: object,
    ) -> None:
        """Send a change to the server; then report the text ``done``, such as ``created topic``."""

        async def write(admin: PulsarAdmin, output: Output) -> None:
            await work(admin)
            output.changed(done, details)

        self.run(asked, write)

    def run(self, asked: str, work: Callable[[PulsarAdmin, Output], Awaitable[None]]) -> None:
        """Run a command's coroutine function, passing a connected admin client and the output.

        Args:
            asked: The request in words that complete the error text "cannot ...".
            work: Coroutine function that sends the requests and writes the results.

        Raises:
            typer.Exit: The work failed; standard error says why.
        """
        from client.admin.pulsar_admin import PulsarAdmin  # 0.2 s, avoided by --help

        self._end_where_it_fails(asked, self._with(PulsarAdmin, work))

    def ask(self, asked: str, work: Callable[[AdminRest, Output], Awaitable[None]]) -> None:
        """Run a command's coroutine function, passing a plain REST client; see :meth:`run`."""
        from client.admin.rest import AdminRest

        self._end_where_it_fails(asked, self._with(AdminRest, work))

    def _end_where_it_fails(self, asked: str, done: Coroutine[object, object, None]) -> None:
        try:
            with nobody_need_read():
                asyncio.run(done)
        except AdminError as error:
            status = EXIT_USAGE if isinstance(error, _OF_THE_USER) else EXIT_FAILED
            if isinstance(error, AdminRefusedError):
                self.fail(sentence(asked, error), status, status=error.status, reason=error.reason)
            self.fail(sentence(asked, error), status)

    def fail(self, text: str, exit_status: int, **more: object) -> NoReturn:
        """Write an error and exit; in JSON output, ``more`` adds members to its object.

        Raises:
            typer.Exit: Always.
        """
        say(text, as_json=self.as_json, **more)
        raise typer.Exit(exit_status) from None

    async def _with(
        self, kind: Callable[..., Server], work: Callable[[Server, Output], Awaitable[None]]
    ) -> None:
        if shown_url(self.admin_url) != self.admin_url:
            raise AdminCredentialsError(
                f"{shown_url(self.admin_url)} was given with a name and password in it, which "
                "everybody on this machine can read; write --auth-plugin basic --auth-params "
                "file:///path"
            )
        server = kind(self.admin_url, self.request_timeout_seconds, *self.shown.credentials())
        async with server:
            await work(server, Output(as_json=self.as_json))


def say(text: str, *, as_json: bool, **more: object) -> None:
    """Write an error text to standard error; in JSON output, ``more`` adds members."""
    said = json.dumps({"error": text, **more}) if as_json else f"{PROGRAM}: {printable(text)}"
    sys.stderr.write(f"{said}\n")


def sentence(asked: str, error: AdminError) -> str:
    """Return an error as a sentence: what could not be done, the reason, and a hint."""
    if isinstance(error, AdminRefusedError):
        words = f"{error.reason.rstrip('.')} (HTTP {error.status})"
        hints = (one[2] for one in _REMEDIES if one[0] == error.status and one[1] in error.reason)
        advice = next(hints, "")
    elif isinstance(error, AdminUnreachableError):
        words = str(error)
        advice = "start the broker, or name its web port with --admin-url or FLOODGATE_ADMIN_URL"
    else:
        words, advice = str(error), ""
    return f"cannot {asked}: {words}{f'; {advice}' if advice else ''}"
