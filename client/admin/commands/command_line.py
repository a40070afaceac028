"""``floodgate-admin``: command-line access to the admin REST API of Floodgate or a real Pulsar.

Commands and options have pulsar-admin's names. Exit status: 0 done, 1 the broker refused or cannot
be reached, 2 the command line is wrong, 130 interrupted.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import typer
from typer.exceptions import TyperException

from client.admin.commands import brokers, messages, namespaces, tokens, topics
from client.admin.commands.call import EXIT_FAILED, EXIT_USAGE, PROGRAM, Call, Shown, say
from client.admin.commands.options import COMMON, Option, flag
from client.admin.commands.output import forget_output, nobody_need_read, ready_streams, unreadable
from client.admin.commands.policies import policy_verbs, topic_policies
from client.admin.commands.values import document, one_of
from client.admin.commands.verbs import Function, add, taking
from client.admin.url import DEFAULT_ADMIN_URL, REQUEST_TIMEOUT_SECONDS
from proto.version import VERSION

if TYPE_CHECKING:
    from client.admin.commands.output import Output
    from client.admin.rest import AdminRest, Body

_AS_WRITTEN = "/%?=&:@!$'()*+,;~"
"""Characters of a path that are sent as written; all others are percent-encoded."""


def _body(text: str) -> Body:
    from client.admin.rest import Body

    return Body(document(text))


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key:
        raise typer.BadParameter(f"{text[:50]!r} is no key=value")
    return key, value


_OPTIONS = {
    "method": Option(str, "", "GET, PUT, POST or DELETE.", "METHOD",
                     parser=one_of("GET", "PUT", "POST", "DELETE")),
    "path": Option(str, "", "Path below /admin/v2, or from its first slash on.", "PATH"),
    "body": Option(str, "--body", "Body: JSON, or @FILE for a JSON file.", "JSON", None, _body),
    "query": Option(list[str], "--query", "Member of the query. May be repeated.", "K=V", None,
                    _pair),
}  # fmt: skip


def _request(
    call: Call, method: str, path: str, body: Body | None, query: list[tuple[str, str]] | None
) -> None:
    """Send any request to the admin REST API, and write the response.

    Examples:
    floodgate-admin request GET persistent/acme/orders/eu/stats
    floodgate-admin request GET brokers/health --query topicVersion=V2
    floodgate-admin request POST namespaces/acme/orders/messageTTL --body 60
    """
    whole = quote(path if path.startswith("/") else f"/admin/v2/{path}", safe=_AS_WRITTEN)
    if query:
        whole += f"{'&' if '?' in whole else '?'}{urlencode(query, quote_via=quote, safe='')}"

    async def write(rest: AdminRest, output: Output) -> None:
        answer = await rest.text(method, whole, body)
        try:
            found = json.loads(answer or "null")
        except (ValueError, RecursionError):
            output.text(answer.strip(), "answer")
        else:
            output.value(found)

    call.ask(f"{method} {whole}", write)


REQUEST = Function("request", _request, _OPTIONS)


_CREDENTIALS = ("AUTH_PLUGIN", "AUTH_PARAMS", "TLS_TRUST_CERTS_FILE_PATH")
"""Variable names from client.authentication.access, copied so that --help need not import it."""


def say_version(asked: bool) -> None:
    """Write the program's version and exit, if ``--version`` was given."""
    if asked:
        typer.echo(f"Floodgate {VERSION}")
        raise typer.Exit


app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    help="Administer a Floodgate or Pulsar broker by its admin REST: the verbs of pulsar-admin, "
    "without Java.",
    epilog="""Examples:
floodgate-admin tenants create acme
floodgate-admin namespaces create acme/orders
floodgate-admin topics create acme/orders/eu -p team=red,tier=1
floodgate-admin topics list acme/orders
floodgate-admin --admin-url http://10.0.0.7:8080 brokers healthcheck
floodgate-admin topics --help

FLOODGATE_ADMIN_URL, FLOODGATE_AUTH_PLUGIN, FLOODGATE_AUTH_PARAMS and
FLOODGATE_TLS_TRUST_CERTS_FILE_PATH in the environment stand for those options.""",
)
add(app, REQUEST)
add(topics.app, *messages.VERBS, *namespaces.OF_TOPICS)
add(topic_policies, *policy_verbs(topics=True))
add(namespaces.app, *policy_verbs(topics=False), *namespaces.OF_NAMESPACES)
for group in (
    topics.app,
    topic_policies,
    topics.schemas,
    namespaces.app,
    namespaces.tenants,
    namespaces.clusters,
    tokens.tokens,
    brokers.brokers,
    brokers.floodgate,
    brokers.faults,
):
    app.add_typer(group)


def _floodgate_admin(context: typer.Context, **given: Any) -> None:  # noqa: ANN401 - typer's
    """Store the options written before the command; the same options may follow the command."""
    shown = Shown(*(os.environ.get(f"FLOODGATE_{name}", "") for name in _CREDENTIALS))
    context.obj = Call(DEFAULT_ADMIN_URL, False, REQUEST_TIMEOUT_SECONDS, shown).then(given)


_BEFORE_THE_VERB = {
    **COMMON,
    "admin_url": replace(COMMON["admin_url"], text="Web address of the broker.",
                         envvar="FLOODGATE_ADMIN_URL", default=DEFAULT_ADMIN_URL),
    "version": replace(flag("--version", "Print the version and exit."), at_once=say_version),
}  # fmt: skip
app.callback()(taking(_BEFORE_THE_VERB, _floodgate_admin))


def main() -> None:
    """Run the command line ``floodgate-admin``."""
    ready_streams()
    as_json, status = "--json" in sys.argv, 0
    try:
        with nobody_need_read():
            status = _status(as_json=as_json)
    except OSError as error:  # Network errors became sentences in Call
        forget_output()
        say(f"cannot write to standard output: {error.strerror or error}", as_json=as_json)
        status = EXIT_FAILED
    sys.exit(status)


def _status(*, as_json: bool) -> int:
    if wrong := unreadable(sys.argv[1:]):
        say(wrong, as_json=as_json)
        return EXIT_USAGE
    if not as_json:
        _program()(prog_name=PROGRAM)
        return 0
    try:
        return int(_program()(prog_name=PROGRAM, standalone_mode=False) or 0)
    except TyperException as error:
        say(error.format_message(), as_json=as_json)
        return EXIT_USAGE


@cache
def _program() -> Any:  # noqa: ANN401 - Typer names no type for it
    """Return all commands as a single Click command; building it takes 40 ms."""
    return typer.main.get_command(app)
