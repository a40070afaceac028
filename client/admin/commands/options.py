"""Arguments and options that several verbs of ``floodgate-admin`` have, and those that all have."""

from __future__ import annotations

import inspect
from enum import StrEnum
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Annotated, Any

import typer

from client.admin.commands.call import PROGRAM, Call, Shown
from proto.names import DOMAINS, InvalidNameError, NamespaceName, TopicName

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

EVERYWHERE = "Everywhere"
"""The panel of the options that every verb has."""
_COLUMNS = 78
_BREAKS = TextWrapper(
    _COLUMNS - 2, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
)


class Pairs(dict[str, str]):
    """Properties, as ``k1=v1,k2=v2`` gives them."""


class TopicDomain(StrEnum):
    """Pulsar's two kinds of topics, spelled as pulsar-admin does."""

    PERSISTENT = "persistent"
    NON_PERSISTENT = "non_persistent"

    @property
    def name_in_urls(self) -> str:
        """The domain as topic names begin with it."""
        return self.value.replace("_", "-")


def domains_of(domain: TopicDomain | None) -> Sequence[str]:
    """Return the domain that was asked for, or both."""
    return DOMAINS if domain is None else (domain.name_in_urls,)


def parsed_topic(text: str) -> TopicName:
    """Parse a topic's name.

    Raises:
        typer.BadParameter: It is none.
    """
    try:
        return TopicName.parse(text)
    except InvalidNameError as error:
        raise typer.BadParameter(
            f"{error} (a topic is persistent://tenant/namespace/topic, tenant/namespace/topic, or "
            "topic for one in public/default)"
        ) from None


def parsed_namespace(text: str) -> NamespaceName:
    """Parse a namespace's name.

    Raises:
        typer.BadParameter: It is none.
    """
    try:
        return NamespaceName.parse(text)
    except InvalidNameError:
        raise typer.BadParameter(f"{text!r} is no namespace: write tenant/namespace") from None


def parsed_pairs(text: str) -> Pairs:
    """Parse ``k1=v1,k2=v2``.

    Raises:
        typer.BadParameter: A part has no ``=``, or no key.
    """
    pairs = Pairs()
    for part in text.split(","):
        key, separator, value = part.partition("=")
        if not separator or not key.strip():
            raise typer.BadParameter(f"{part!r} is no key=value: write k1=v1,k2=v2")
        pairs[key.strip()] = value.strip()
    return pairs


def merged(several: Sequence[Pairs] | None) -> Pairs:
    """Return the properties of an option that may be repeated."""
    return Pairs({key: value for pairs in several or () for key, value in pairs.items()})


def words_of(several: Sequence[str] | None) -> list[str]:
    """Return the words of an option that takes ``a,b`` and may be repeated."""
    words = [word.strip() for text in several or () for word in text.split(",")]
    return [word for word in words if word]


Topic = Annotated[
    TopicName,
    typer.Argument(
        metavar="TOPIC",
        parser=parsed_topic,
        help="persistent://tenant/namespace/topic; tenant/namespace/topic; or a bare name for a "
        "topic in public/default.",
    ),
]
Namespace = Annotated[
    NamespaceName,
    typer.Argument(metavar="NAMESPACE", parser=parsed_namespace, help="tenant/namespace."),
]
Tenant = Annotated[str, typer.Argument(metavar="TENANT")]
Domain = Annotated[
    TopicDomain | None,
    typer.Option(
        "--topic-domain",
        "-td",
        metavar="KIND",
        help="persistent or non_persistent; without it both.",
    ),
]
SystemTopics = Annotated[
    bool,
    typer.Option("--include-system-topic", "-ist", help="Include system topics."),
]


def _pairs(help_text: str, *spellings: str) -> Any:  # noqa: ANN401 - typer says so
    return typer.Option(
        *spellings, parser=parsed_pairs, metavar="K=V,...", help=f"{help_text} May be repeated."
    )


_METADATA = "Properties of the topic."
Metadata = Annotated[
    list[Pairs] | None, _pairs(_METADATA, "--metadata", "-m", "--properties", "-p")
]
# Here -p is the number of partitions, as pulsar-admin has it.
PartitionedMetadata = Annotated[
    list[Pairs] | None, _pairs(_METADATA, "--metadata", "-m", "--properties")
]
Filter = Annotated[
    list[Pairs] | None,
    _pairs("Only topics with all of these properties.", "--properties", "-p", "--property"),
]
Update = Annotated[list[Pairs], _pairs("Properties to set.", "--property", "-p", "--properties")]
Partitions = Annotated[
    int,
    typer.Option("--partitions", "-p", min=1, help="Number of partitions."),
]
Force = Annotated[bool, typer.Option("--force", "-f", help="Delete it even while clients use it.")]
AdminUrl = Annotated[
    str | None,
    typer.Option(
        "--admin-url",
        metavar="URL",
        help="Web address of the broker. Without it FLOODGATE_ADMIN_URL, or http://localhost:8080.",
        rich_help_panel=EVERYWHERE,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Print results as JSON on standard output, errors as JSON on standard error.",
        rich_help_panel=EVERYWHERE,
    ),
]
RequestTimeout = Annotated[
    int | None,
    typer.Option(
        "--request-timeout",
        metavar="SECONDS",
        min=1,
        help="Timeout while the server sends nothing; without it 300.",
        rich_help_panel=EVERYWHERE,
    ),
]
AuthPlugin = Annotated[
    str | None,
    typer.Option(
        "--auth-plugin",
        metavar="NAME",
        help="Kind of the credentials: token (the default), basic, tls, or a class name of Pulsar.",
        rich_help_panel=EVERYWHERE,
    ),
]
AuthParams = Annotated[
    str | None,
    typer.Option(
        "--auth-params",
        metavar="WHERE",
        help="Where the token or name:password is: file:PATH or env:NAME. For tls: "
        "tlsCertFile:PATH, a comma, tlsKeyFile:PATH.",
        rich_help_panel=EVERYWHERE,
    ),
]
TrustCerts = Annotated[
    str | None,
    typer.Option(
        "--tls-trust-certs-file-path",
        "--tls-trust-cert-path",
        metavar="FILE",
        help="Trusted CA certificates (PEM), to check the broker with; without it the system's.",
        rich_help_panel=EVERYWHERE,
    ),
]


def verb(group: typer.Typer, name: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a verb: its first argument is the :class:`Call`, the others are its own.

    Every verb takes the options of the whole program too, so that they may stand behind it.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        group.command(name)(_command(function))
        return function

    return register


def _fitted(text: str) -> str:
    """Break example commands that are wider than a terminal, so that they can still be pasted."""
    lines = []
    for line in inspect.cleandoc(text).splitlines():
        is_example = line.startswith(f"{PROGRAM} ") and len(line) > _COLUMNS
        lines.append(" \\\n".join(_BREAKS.wrap(line)) if is_example else line)
    return "\n".join(lines)


def _command(function: Callable[..., None]) -> Callable[..., None]:
    def command(  # noqa: PLR0913 - each is an option
        context: typer.Context,
        admin_url: AdminUrl = None,
        as_json: AsJson = False,
        request_timeout: RequestTimeout = None,
        auth_plugin: AuthPlugin = None,
        auth_params: AuthParams = None,
        tls_trust_certs: TrustCerts = None,
        **own: Any,  # noqa: ANN401 - whatever the verb takes
    ) -> None:
        before: Call = context.obj
        function(
            Call(
                admin_url or before.admin_url,
                as_json or before.as_json,
                request_timeout or before.request_timeout_seconds,
                Shown(auth_plugin or "", auth_params or "", tls_trust_certs or "").over(
                    before.shown
                ),
            ),
            **own,
        )

    own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
    common = list(inspect.signature(command, eval_str=True).parameters.values())[:-1]
    together = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in (*own, *common)
    ]
    command.__doc__ = _fitted(function.__doc__ or "")
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in together}
    command.__signature__ = inspect.Signature(together)  # type: ignore[attr-defined]
    return command
