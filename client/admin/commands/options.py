"""The options of ``floodgate-admin``, each declared once and used by many commands."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any

import typer

from client.admin.commands.values import (
    Entries,
    MessageId,
    Mode,
    Pairs,
    TopicDomain,
    domains_of,
    megabytes,
    merged,
    message_id,
    one_of,
    parsed_namespace,
    parsed_pairs,
    parsed_topic,
    seconds,
    size_bytes,
    words_of,
)
from proto.names import NamespaceName, TopicName

if TYPE_CHECKING:
    from collections.abc import Callable

REQUIRED: Any = ...
"""Marks an option as mandatory, in place of a default."""


@dataclass(frozen=True, slots=True)
class Option:
    """The declaration of an option or argument of the command line.

    Attributes:
        kind: The Python type of the value.
        spellings: The option's names, such as ``--force -f``; empty for an argument.
        text: The help text.
        metavar: The value's placeholder in help texts; with None, Typer shows the type.
        default: The default value; REQUIRED for a mandatory option.
        parser: Function that parses the text on the command line to the value.
        least: The smallest number allowed.
        made: Function that converts the value, or the list of a repeated option, for the command.
        panel: Heading in the help text below which the option is listed.
        envvar: Environment variable that is read if the option is absent.
        example: The argument's value in examples.
        at_once: Function that a flag calls before other options are processed.
    """

    kind: Any
    spellings: str
    text: str | None = None
    metavar: str | None = None
    default: Any = REQUIRED
    parser: Callable[[str], object] | None = None
    least: int | None = None
    made: Callable[[Any], object] | None = None
    panel: str | None = None
    envvar: str | None = None
    example: str | None = None
    at_once: Callable[[bool], None] | None = None

    def of(self, value: Any) -> object:  # noqa: ANN401 - depends on the kind
        """Convert an option's value, or a repeated option's list of values, for the command."""
        return self.made(value) if self.made else value


@cache
def parameter(name: str, option: Option) -> inspect.Parameter:
    """Return an option as the parameter of a function that Typer can call."""
    kind = option.kind | None if option.default is None else option.kind
    declared = (typer.Option if option.spellings else typer.Argument)(
        *option.spellings.split(), metavar=option.metavar, help=option.text, parser=option.parser,
        min=option.least, rich_help_panel=option.panel, envvar=option.envvar,
        callback=option.at_once, is_eager=option.at_once is not None,
    )  # fmt: skip
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[kind, declared],
        default=inspect.Parameter.empty if option.default is REQUIRED else option.default,
    )


def flag(
    spellings: str,
    text: str,
    default: object = False,
    made: Callable[[bool], object] | None = None,
) -> Option:
    """Return an on-off option, which has no value on the command line."""
    return Option(bool, spellings, text, None, default, made=made)


def number(spellings: str, text: str, default: object = REQUIRED) -> Option:
    """Return an option whose value is an integer."""
    return Option(int, spellings, text, "N", default)


def parsed(
    parser: Callable[[str], int], spellings: str, text: str, default: object = REQUIRED
) -> Option:
    """Return an option whose value is a time or a size, such as ``10m`` or ``16G``."""
    metavar = "SIZE" if parser in (size_bytes, megabytes) else "TIME"
    return Option(int, spellings, text, metavar, default, parser)


def name_of(spellings: str, text: str, *names: str, default: object = REQUIRED) -> Option:
    """Return an option that accepts one of the given names and lists them in its help text."""
    listed = f"{text}: {', '.join(names)}."
    return Option(str, spellings, listed, "NAME", default, one_of(*names))


def words(spellings: str, text: str, default: object = REQUIRED) -> Option:
    """Return a repeatable option whose value is a comma-separated list."""
    return Option(list[str], spellings, text, "A,B", default, made=words_of)


def pairs(spellings: str, text: str, default: object = None) -> Option:
    """Return a repeatable option whose value is a list of properties, ``k1=v1,k2=v2``."""
    repeated = f"{text} May be repeated."
    return Option(list[Pairs], spellings, repeated, "K=V,...", default, parsed_pairs, made=merged)


_TOPIC = Option(
    TopicName,
    "",
    "persistent://tenant/namespace/topic; tenant/namespace/topic; or a bare name for a topic in "
    "public/default.",
    "TOPIC",
    parser=parsed_topic,
    example="acme/orders/eu",
)
_FORCE = "--force -f"
_METADATA = "Properties of the topic."

# In the order of help.
OPTIONS = {
    "topic": _TOPIC,
    "partitioned": replace(_TOPIC, example="acme/orders/us"),
    "namespace": Option(NamespaceName, "", "tenant/namespace.", "NAMESPACE",
                        parser=parsed_namespace, example="acme/orders"),
    "tenant": Option(str, "", None, "TENANT", example="acme"),
    "cluster": Option(str, "", None, "CLUSTER", example="standalone"),
    "any_cluster": Option(str, "", "Name of the cluster; default: any.", "CLUSTER", None),
    "fault_id": Option(str, "", "ID of the fault to remove (default: all faults).", "ID", None),
    "subscription": Option(str, "--subscription -s", "Name of the subscription.", "NAME"),
    "subscriptions": Option(str, "--sub -s", "Name of the subscriptions.", "NAME"),
    "only_sub": Option(str, "--sub -s", "Only subscriptions with this name.", "NAME", None),
    "role": Option(str, "--role -r", "Role of the clients.", "ROLE"),
    "actions": words(
        "--actions", "Allowed actions: produce, consume, packages, functions, sources, sinks."),
    "roles": words("--roles", "Roles that may use the subscription; no others may."),
    "admin_roles": words("--admin-roles -r", "Roles that may administer the tenant.", None),
    "allowed_clusters": words("--allowed-clusters -c", "Clusters that the tenant may use.", None),
    "applied": flag(
        "--applied -ap",
        "Show the effective value, also where the namespace or the broker sets it."),
    "mode": Option(Mode, "--mode -m", "Topics to list; without it persistent ones.", default=None,
                   made=lambda mode: mode and mode.value.upper()),
    "domain": Option(
        TopicDomain, "--topic-domain -td", "persistent or non_persistent; without it both.",
        "KIND", None, made=domains_of),
    "bundle": Option(str, "--bundle -b", "Only this hash range (bundle).", "RANGE", None),
    "include_system_topic": flag("--include-system-topic -ist", "Include system topics."),
    "with_properties": pairs(
        "--properties -p --property", "Only topics with all of these properties."),
    "partitions": Option(int, "--partitions -p", "Number of partitions.", least=1),
    "metadata": pairs("--metadata -m --properties -p", _METADATA),
    # Like in pulsar-admin, -p is the number of partitions.
    "partitioned_metadata": pairs("--metadata -m --properties", _METADATA),
    "local": flag("--update-local-only -ulo", "Only in the cluster of --admin-url."),
    "properties": pairs("--property -p --properties", "Properties to set.", REQUIRED),
    "property": Option(str, "--key -k", "Property to remove."),
    "key": Option(str, "--config -c", "Name of the key.", "KEY"),
    "value": Option(str, "--value -v", "New value of the key.", "VALUE"),
    "topic_version": Option(str, "--topic-version -tv", "Passed on to the broker.", "V1|V2", None),
    "entries": Option(int, "--count -n", "Number of entries.", least=0, made=Entries),
    "count": Option(int, "--count -n", "Number of messages.", default=1, least=1),
    "age": parsed(seconds, "--expireTime -t", "Age: 90s, 10m, 3h, ..."),
    "back": parsed(seconds, "--time -t", "How far back: 90s, 10m, 3h, ...", None),
    "message_id": Option(
        MessageId, "--messageId --message-id -m", "LEDGER:ENTRY, earliest or latest.",
        "ID", parser=message_id),
    "exclude": flag("--exclude-reset-position -e", "Start after the message."),
    "from_end": Option(
        str, "--initialPosition -i", "Count from earliest or latest.", default="latest"),
    "position": Option(int, "--messagePosition -m", "Position from there; 1 is the first.",
                       default=1, least=1),
    "ledger": Option(int, "--ledgerId -l", "Ledger of the message."),
    "entry": Option(int, "--entryId -e", "Entry of the message."),
    "datetime": Option(int, "--datetime -d", "Milliseconds since 1970-01-01 UTC.", "MS"),
    "earliest": flag("--get-earliest-time-in-backlog -etb",
                     "Include the publish time of the oldest message of each backlog."),
    # Always sent: the brokers' default is to answer for each partition.
    "per_partition": flag(
        "--per-partition", "Show each partition too.", made=lambda shown: str(shown).lower()),
    "version": Option(int, "--version -v", "Version to show; without it the newest.", default=None),
    "every": flag("--all-version -a", "Show all versions."),
    "quota_type": name_of("--type -t", "Kind of quota",
                          "destination_storage", "message_age", default="destination_storage"),
    "force": flag(_FORCE, "Delete it even while clients use it."),
    "unchecked": flag(_FORCE, "Skip the check of the topic's state."),
    "with_namespaces": flag(_FORCE, "Delete its namespaces too, if the broker allows it."),
    "all_versions": flag(_FORCE, "Delete all versions: the next one is version 0."),
}  # fmt: skip
"""The options of all commands, keyed by the names that rows and functions use."""

_COMMON = {
    "admin_url": Option(
        str, "--admin-url",
        "Web address of the broker. Without it FLOODGATE_ADMIN_URL, or http://localhost:8080.",
        "URL", None),
    "as_json": flag(
        "--json", "Print results as JSON on standard output, errors as JSON on standard error."),
    "request_timeout": Option(
        int, "--request-timeout", "Timeout while the server sends nothing; without it 300.",
        "SECONDS", None, least=1),
    "auth_plugin": Option(
        str, "--auth-plugin",
        "Kind of the credentials: token (the default), basic, tls, or a class name of Pulsar.",
        "NAME", None),
    "auth_params": Option(
        str, "--auth-params",
        "Where the token or name:password is: file:PATH or env:NAME. For tls: tlsCertFile:PATH, "
        "a comma, tlsKeyFile:PATH.", "WHERE", None),
    "tls_trust_certs": Option(
        str, "--tls-trust-certs-file-path --tls-trust-cert-path",
        "Trusted CA certificates (PEM), to check the broker with; without it the system's.",
        "FILE", None),
}  # fmt: skip
COMMON = {name: replace(option, panel="Everywhere") for name, option in _COMMON.items()}
"""The options that every command has, also accepted before the command's name."""
