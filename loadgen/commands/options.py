"""Command-line options that several commands share, and functions that read their values."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import TypeAdapter, ValidationError

from loadgen.commands.shown import say
from loadgen.documents.faults import fault_of
from loadgen.documents.reading import read_document, shipped
from loadgen.documents.server_keys import known_keys
from loadgen.errors import LoadgenError, UsageError
from loadgen.loopback import CONFIRMATION_FLAG, require_own_cluster
from loadgen.places.launcher import ServerFiles
from loadgen.places.operator_files import read_own_server
from loadgen.places.options import require_service_url
from loadgen.results.expectations import parse_expectation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from loadgen.documents.model import Document

_ROLE_URL = re.compile(r"(broker|proxy)=(https?:[^,]*)(?:,(\d+))?")


def complete_target(incomplete: str) -> list[str]:
    """Return the shipped scenarios' names that begin with a typed word, for shell completion.

    The shell itself completes file names.
    """
    return [name for name in shipped() if name.startswith(incomplete)]


def complete_setting(context: typer.Context, incomplete: str) -> list[str]:
    """Return the ``--set`` paths that begin with a typed word, each cut after its next part."""
    try:
        document = read_document(context.params["target"])
    except (KeyError, LoadgenError, TypeError):
        document = read_document("storm")
    paths = [each for each in _paths(document.resolved(), "") if each.startswith(incomplete)]
    common = os.path.commonprefix(paths)  # noqa: RUF071 (of characters)
    typed = max(len(incomplete), common.rfind(".") + 1)
    steps = (f"{each[:typed]}{''.join(each[typed:].partition('.')[:2])}" for each in paths)
    return list(dict.fromkeys(steps))


def _paths(values: Any, above: str) -> Iterator[str]:  # noqa: ANN401
    """Yield the ``--set`` path of every value in a scenario, and of every key of its servers."""
    if above in ("servers.broker.", "servers.proxy."):
        yield from (f"{above}{each.key}" for each in known_keys(above.split(".")[1]))
    elif isinstance(values, dict):
        for key, value in values.items():
            yield from _paths(value, f"{above}{key}.")
    elif isinstance(values, list) and values and isinstance(values[0], dict):
        for number, value in enumerate(values):
            yield from _paths(value, f"{above}{value.get('name', number)}.")
    else:
        yield above.removesuffix(".")


_option = partial(typer.Option, show_default=False)
Target = Annotated[
    str,
    typer.Argument(
        metavar="NAME|FILE",
        help="Ready-made scenario (`loadgen scenarios` lists them), or your own FILE.yaml.",
        autocompletion=complete_target,
        show_default=False,
    ),
]
_SET = (
    "A value of the scenario: clients.all.count=500; PATH+=VALUE adds to a list. May be repeated."
)
Settings = Annotated[
    list[str] | None,
    _option("--set", metavar="PATH=VALUE", help=_SET, autocompletion=complete_setting),
]
_SERVICE = (
    "pulsar://host:port of a broker or proxy that runs. Without it the scenario's servers are "
    "started here and stopped at the end."
)
ServiceUrl = Annotated[str, _option(metavar="URL", help=_SERVICE)]
_ADMIN = (
    "Web port of a running broker or proxy, broker=http://..., to sample its metrics; with its "
    "process id also its memory. May be repeated."
)
AdminUrl = Annotated[list[str] | None, _option(metavar="ROLE=URL[,PID]", help=_ADMIN)]
_BROKER = "broker.conf whose keys override the scenario's."
BrokerConf = Annotated[Path | None, _option(help=_BROKER)]
_PROXY = "proxy.conf whose keys override the scenario's; adds a proxy if it has none."
ProxyConf = Annotated[Path | None, _option(help=_PROXY)]
Confirmed = Annotated[
    bool, typer.Option(CONFIRMATION_FLAG, help="Allow an address other than this machine's.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]


def wanted(target: str, settings: Sequence[str] | None) -> Document:
    """Read the scenario that a command line names, and apply its ``--set`` options.

    Raises:
        UsageError: The document has an error; the message names the place.
    """
    return read_document(target, settings or (), parse_expectation)


def parsed(option: str, text: str, kind: Any) -> Any:  # noqa: ANN401 - as its kind is
    """Convert the text of an option in the way a scenario document converts values of that type.

    Raises:
        UsageError: The text is invalid.
    """
    try:
        return TypeAdapter(kind).validate_python(text)
    except ValidationError as error:
        fault = fault_of(error.errors(include_url=False)[0])
        raise UsageError(f"{option} {text[:40]!r} {fault.sentence}") from None


def require_own_address(option: str, url: str, *, confirmed: bool) -> None:
    """Refuse an invalid service URL, and another machine's URL unless the user confirmed it.

    Raises:
        UsageError: The URL is refused.
    """
    if url:
        require_service_url(option, url)
        require_own_cluster(url, confirmed=confirmed)


def parse_admin_urls(texts: Sequence[str]) -> tuple[dict[str, str], dict[str, int]]:
    """Parse ``--admin-url`` options, such as ``broker=http://host:port,4711``.

    Returns the web ports and the process ids, each by server role.

    Raises:
        UsageError: An option has another form, or two options name the same role.
    """
    urls: dict[str, str] = {}
    pids: dict[str, int] = {}
    for text in texts:
        found = _ROLE_URL.fullmatch(text)
        if found is None:
            raise UsageError(
                f"--admin-url {text[:80]!r}: write broker=http://host:port or "
                "proxy=http://host:port, and behind a comma its process id if it runs here"
            )
        role, url, pid = found.groups()
        if role in urls:
            raise UsageError(f"--admin-url names the {role} twice")
        urls[role] = url
        if pid:
            pids[role] = int(pid)
    return urls, pids


def own_files(
    broker_conf: Path | None, proxy_conf: Path | None, *, as_json: bool = False
) -> ServerFiles:
    """Read an operator's broker.conf and proxy.conf; warn about keys that have no effect.

    Raises:
        UsageError: A file cannot be read, or has wrong values.
    """
    files = ServerFiles(
        read_own_server("broker", broker_conf), read_own_server("proxy", proxy_conf)
    )
    for each in files.warnings():
        say(each, as_json=as_json, kind="warning")
    return files
