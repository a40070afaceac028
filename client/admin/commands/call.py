"""One call of ``floodgate-admin``: the server that is asked, the output, the errors.

The boundary behind which no exception is a user's to read: whatever a server or a network does
ends in one sentence on standard error and exit status 1.
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import aclosing
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import typer

from client.admin.commands.output import Output, printable
from client.admin.commands.streams import nobody_need_read
from client.admin.errors import (
    AdminCredentialsError,
    AdminError,
    AdminRefusedError,
    AdminUnreachableError,
    AdminUrlError,
)
from client.admin.url import shown_url

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping

    from client.admin.pulsar_admin import PulsarAdmin
    from client.authentication.authentication import Authentication

T = TypeVar("T")
PROGRAM = "floodgate-admin"
EXIT_FAILED = 1
EXIT_USAGE = 2
_OF_THE_USER = (AdminUrlError, AdminCredentialsError)
_REMEDIES = (
    (
        401,
        "Authentication required",
        "show credentials: --auth-params file:///path of a token, or FLOODGATE_AUTH_PARAMS",
    ),
    (404, "Tenant", "`floodgate-admin tenants list` shows what there is"),
    (404, "Namespace", "`floodgate-admin namespaces list TENANT` shows what there is"),
    (
        404,
        "Partitioned Topic ",
        "`floodgate-admin topics list-partitioned-topics NAMESPACE` shows what there is",
    ),
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
    (
        412,
        "non-dynamic configuration",
        "`floodgate-admin brokers list-dynamic-config` shows the keys that can change",
    ),
)
"""Hints for refusals: the HTTP status, words of the reason, what is said behind it."""


class Shown(NamedTuple):
    """The credentials of a call, by name, as options or variables give them.

    Attributes:
        plugin: ``token``, ``basic`` or ``tls``; empty: a token.
        params: Where they are; empty: none.
        trust_certs_file_path: Whom to trust; empty: the system's.
    """

    plugin: str = ""
    params: str = ""
    trust_certs_file_path: str = ""

    def over(self, before: Shown) -> Shown:
        """Return these, and what they do not say as it was said before."""
        own = self if self.params or self.plugin else before
        return Shown(
            own.plugin, own.params, self.trust_certs_file_path or before.trust_certs_file_path
        )

    def credentials(self) -> tuple[Authentication | None, str | None]:
        """Return the credentials, and the file of those who are trusted.

        Raises:
            AdminCredentialsError: They cannot be read, or stand on the command line themselves.
        """
        from client.authentication.access import Access
        from client.exceptions import PulsarException

        try:
            return Access(*self).authentication(), self.trust_certs_file_path or None
        except PulsarException as error:
            raise AdminCredentialsError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Call:
    """The options of a command line beside the verb's own arguments."""

    admin_url: str
    as_json: bool
    request_timeout_seconds: float
    shown: Shown = field(default_factory=Shown)

    def names(
        self, asked: str, work: Callable[[PulsarAdmin], AsyncGenerator[list[str], None]]
    ) -> None:
        """Write a list of names as it arrives."""

        async def stream(admin: PulsarAdmin, output: Output) -> None:
            async with aclosing(work(admin)) as batches:
                await output.stream(batches)

        self.run(asked, stream)

    def few(self, asked: str, work: Callable[[PulsarAdmin], Awaitable[list[str]]]) -> None:
        """Write a short list of names."""
        self._show(asked, work, Output.names)

    def table(
        self,
        asked: str,
        work: Callable[[PulsarAdmin], Awaitable[Mapping[str, Any]]],
        *,
        hide_unset: bool = False,
    ) -> None:
        """Write an object."""
        self._show(asked, work, partial(Output.table, hide_unset=hide_unset))

    def value(self, asked: str, work: Callable[[PulsarAdmin], Awaitable[object]]) -> None:
        """Write JSON of any kind."""
        self._show(asked, work, Output.value)

    def text(self, asked: str, key: str, work: Callable[[PulsarAdmin], Awaitable[str]]) -> None:
        """Write a text, which JSON calls ``key``."""
        self._show(asked, work, partial(Output.text, key=key))

    def member(
        self, asked: str, key: str, work: Callable[[PulsarAdmin], Awaitable[Mapping[str, Any]]]
    ) -> None:
        """Write an object; people see its member ``key`` only."""

        async def write(admin: PulsarAdmin, output: Output) -> None:
            found = await work(admin)
            if output.as_json:
                output.json(found)
            else:
                output.say(str(found.get(key)))

        self.run(asked, write)

    def change(
        self, asked: str, changed: Changed, work: Callable[[PulsarAdmin], Awaitable[object]]
    ) -> None:
        """Change something and say so."""

        async def write(admin: PulsarAdmin, output: Output) -> None:
            await work(admin)
            output.changed(changed.done, changed.thing, changed.details)

        self.run(asked, write)

    def _show(
        self,
        asked: str,
        work: Callable[[PulsarAdmin], Awaitable[T]],
        show: Callable[[Output, T], None],
    ) -> None:
        async def write(admin: PulsarAdmin, output: Output) -> None:
            show(output, await work(admin))

        self.run(asked, write)

    def run(self, asked: str, work: Callable[[PulsarAdmin, Output], Awaitable[None]]) -> None:
        """Do the work, and end the process when it fails.

        Args:
            asked: What is asked for, so that "cannot ..." is a sentence.
            work: Asks the server and writes what it answers.

        Raises:
            typer.Exit: It failed; standard error says why.
        """
        try:
            with nobody_need_read():
                asyncio.run(self._run(work))
        except AdminError as error:
            self._say(sentence(asked, error), error)
            status = EXIT_USAGE if isinstance(error, _OF_THE_USER) else EXIT_FAILED
            raise typer.Exit(status) from None

    async def _run(self, work: Callable[[PulsarAdmin, Output], Awaitable[None]]) -> None:
        from client.admin.pulsar_admin import PulsarAdmin  # 0.2 s that --help need not wait for

        if shown_url(self.admin_url) != self.admin_url:
            raise AdminCredentialsError(
                f"{shown_url(self.admin_url)} was given with a name and password in it, which "
                "everybody on this machine can read; write --auth-plugin basic --auth-params "
                "file:///path"
            )
        authentication, trusted = self.shown.credentials()
        admin_of_a_user = PulsarAdmin(
            self.admin_url, self.request_timeout_seconds, authentication, trusted
        )
        async with admin_of_a_user as admin:
            await work(admin, Output(as_json=self.as_json))

    def _say(self, text: str, error: AdminError) -> None:
        if not self.as_json:
            sys.stderr.write(f"{PROGRAM}: {printable(text)}\n")
            return
        said: dict[str, object] = {"error": text}
        if isinstance(error, AdminRefusedError):
            said |= {"status": error.status, "reason": error.reason}
        sys.stderr.write(f"{json.dumps(said)}\n")


class Changed:
    """The words for a change: a verb, what it was done to, and details for machines."""

    def __init__(self, done: str, thing: object, **details: object) -> None:
        self.done, self.thing, self.details = done, str(thing), details


def sentence(asked: str, error: AdminError) -> str:
    """Return an error's text: what could not be done, why, and a hint."""
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
