"""``floodgate-admin``: the admin REST of a Floodgate broker or a real Pulsar, by hand.

Verbs and options are pulsar-admin's. Exit status: 0 done, 1 the broker refused or cannot be
reached, 2 the command line is wrong, 130 interrupted.
"""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from typing import Annotated, Any

import typer
from typer.exceptions import TyperException

from client.admin.commands import brokers, faults, namespaces, schemas, tenants, tokens, topics
from client.admin.commands.call import EXIT_FAILED, EXIT_USAGE, PROGRAM, Call, Shown
from client.admin.commands.messages.verbs import add_message_verbs
from client.admin.commands.options import (
    EVERYWHERE,
    AsJson,
    AuthParams,
    AuthPlugin,
    RequestTimeout,
    TrustCerts,
)
from client.admin.commands.policies.permissions import add_permissions
from client.admin.commands.policies.verbs import add_policies, topic_policies
from client.admin.commands.streams import forget_output, nobody_need_read, ready_streams, unreadable
from client.admin.url import DEFAULT_ADMIN_URL, REQUEST_TIMEOUT_SECONDS
from proto.version import VERSION

_CREDENTIALS = ("AUTH_PLUGIN", "AUTH_PARAMS", "TLS_TRUST_CERTS_FILE_PATH")
"""Names of client.authentication.access, whose import --help need not wait for."""


def say_version(asked: bool) -> None:
    """Print the version and end, if that is asked for."""
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
add_message_verbs(topics.app)
add_policies(topic_policies, topics=True)
add_policies(namespaces.app, topics=False)
add_permissions(namespaces.app, topics.app)
app.add_typer(topics.app, name="topics")
app.add_typer(topic_policies, name="topicPolicies")
app.add_typer(schemas.app, name="schemas")
app.add_typer(namespaces.app, name="namespaces")
app.add_typer(tenants.tenants, name="tenants")
app.add_typer(tenants.clusters, name="clusters")
app.add_typer(tokens.tokens, name="tokens")
app.add_typer(brokers.brokers, name="brokers")
app.add_typer(brokers.floodgate, name="floodgate")
app.add_typer(faults.faults, name="faults")


@app.callback()
def floodgate_admin(  # noqa: PLR0913 - each is an option
    context: typer.Context,
    admin_url: Annotated[
        str,
        typer.Option(
            "--admin-url",
            metavar="URL",
            envvar="FLOODGATE_ADMIN_URL",
            help="Web address of the broker.",
            rich_help_panel=EVERYWHERE,
        ),
    ] = DEFAULT_ADMIN_URL,
    as_json: AsJson = False,
    request_timeout: RequestTimeout = None,
    auth_plugin: AuthPlugin = None,
    auth_params: AuthParams = None,
    tls_trust_certs: TrustCerts = None,
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=say_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Keep the options before the verb; the same may stand behind it."""
    named = (os.environ.get(f"FLOODGATE_{name}", "") for name in _CREDENTIALS)
    shown = Shown(auth_plugin or "", auth_params or "", tls_trust_certs or "").over(Shown(*named))
    context.obj = Call(admin_url, as_json, request_timeout or REQUEST_TIMEOUT_SECONDS, shown)


def main() -> None:
    """Run the command line."""
    ready_streams()
    status = 0
    try:
        with nobody_need_read():
            status = _status(as_json="--json" in sys.argv)
    except OSError as error:  # Call has made sentences of what the network does
        forget_output()
        _say(f"cannot write to standard output: {error.strerror or error}")
        status = EXIT_FAILED
    sys.exit(status)


def _status(*, as_json: bool) -> int:
    if wrong := unreadable(sys.argv[1:]):
        _say(wrong)
        return EXIT_USAGE
    if not as_json:
        _program()(prog_name=PROGRAM)
        return 0
    try:
        return int(_program()(prog_name=PROGRAM, standalone_mode=False) or 0)
    except TyperException as error:
        _say(error.format_message())
        return EXIT_USAGE


@cache
def _program() -> Any:  # noqa: ANN401 - Typer names no type for it
    """Return the command that Typer makes of all verbs, which takes it 40 ms."""
    return typer.main.get_command(app)


def _say(text: str) -> None:
    line = json.dumps({"error": text}) if "--json" in sys.argv else f"{PROGRAM}: {text}"
    sys.stderr.write(f"{line}\n")
