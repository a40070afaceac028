"""``loadgen load``: put topics into a running Floodgate, or into a Pulsar by its admin API."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - Typer reads the annotations
from typing import Annotated, Any

import typer
from rich.console import Console

from client.admin.errors import AdminRefusedError
from client.admin.pulsar_admin import PulsarAdmin
from client.admin.rest import NOT_SERVED
from client.admin.url import shown_url
from loadgen.commands.progress_bar import counting
from loadgen.corpus.loader import TopicLoader, admin_errors
from loadgen.corpus.source import count_names, read_topics
from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.servers.loopback import CONFIRMATION_FLAG, require_own_cluster
from proto.invalid_rows import InvalidRows

_CALL_SECONDS = 120.0
_IMPORT_SECONDS = 86_400.0
"""An import takes as long as it takes; a day bounds a server that has died."""
_NOT_FOUND = (404, 405)


@dataclass(frozen=True)
class Loaded:
    """The counts of one loading: topics, namespaces, seconds.

    Attributes:
        existing: Topics that were there before; ``None`` where the server does not tell.
        skipped: Invalid topics that were left out.
    """

    topics: int
    namespaces: int
    seconds: float
    existing: int | None = None
    skipped: int = 0


def load(  # noqa: PLR0913 - one parameter for each option
    path: Annotated[Path, typer.Argument(help="Corpus directory, Parquet file or list of names.")],
    admin_url: Annotated[
        str, typer.Option(metavar="URL", help="The broker's web address.")
    ] = "http://127.0.0.1:8080",
    rest: Annotated[
        bool, typer.Option("--rest", help="Create topics one by one, as a real Pulsar needs it.")
    ] = False,
    concurrency: Annotated[
        int,
        typer.Option(min=1, max=256, metavar="N", help="Calls at once, with --rest."),
    ] = 16,
    skip_invalid: Annotated[
        bool,
        typer.Option(
            "--skip-invalid", help="Leave invalid topics out; otherwise nothing is loaded then."
        ),
    ] = False,
    confirmed: Annotated[
        bool, typer.Option(CONFIRMATION_FLAG, help="Needed unless the address is loopback.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Load topics into a running server.

    A Floodgate broker opens the path itself, so it has to see the same files.

    Examples:
      loadgen load out/topics

      loadgen load topics.txt --rest --skip-invalid --admin-url http://127.0.0.1:8080
    """
    require_own_cluster(admin_url, confirmed=confirmed)
    if not path.exists():
        raise UsageError(f"{path} does not exist; make a corpus with: loadgen topics --out {path}")
    expected = count_names(path)
    if rest:
        loaded = asyncio.run(load_by_rest(path, admin_url, concurrency, skip_invalid=skip_invalid))
    else:
        importing = load_by_import(path.resolve(), admin_url, expected, skip_invalid=skip_invalid)
        loaded = asyncio.run(importing)
    _print(loaded, path, as_json=as_json)


async def load_by_import(
    path: Path, admin_url: str, expected: int | None, *, skip_invalid: bool = False
) -> Loaded:
    """Ask a Floodgate broker to import a path of its own file system.

    Args:
        path: A corpus directory, a Parquet file or a text; absolute, for the server opens it.
        admin_url: The broker's web address.
        expected: How many topics it must have imported or left out, where that is known.
        skip_invalid: Whether it leaves invalid ones out; otherwise it imports nothing then.

    Raises:
        LoadgenError: The broker refused, is not there, or imported another number of topics.
    """
    where = shown_url(admin_url)
    with counting(f"Importing {path}", None), admin_errors(f"The import of {path}", where):
        async with PulsarAdmin(admin_url, _IMPORT_SECONDS) as admin:
            answer = await _import(admin, path, skip_invalid=skip_invalid)
    try:
        counts = int(answer["topics"]), int(answer["namespaces"]), float(answer["seconds"])
        loaded = Loaded(*counts, skipped=int(answer.get("skipped", 0)))
    except (KeyError, TypeError, ValueError) as error:
        raise LoadgenError(f"{where} answered {answer!r}, which is no import result.") from error
    if expected is not None and loaded.topics + loaded.skipped != expected:
        raise LoadgenError(
            f"{path} holds {expected} topics, but the server says it imported {loaded.topics}.",
            ExitCode.CORRECTNESS,
        )
    return loaded


async def load_by_rest(
    path: Path, admin_url: str, concurrency: int, *, skip_invalid: bool = False
) -> Loaded:
    """Create every topic of ``path`` through the admin REST API; invalid ones may be left out.

    Raises:
        LoadgenError: The server refused something, or is not there.
    """
    started = time.perf_counter()
    skipped = InvalidRows(path)
    topics = read_topics(path, skipped if skip_invalid else None)
    bar = counting(f"Creating the topics of {path}", count_names(path))
    with bar as on_names_created, admin_errors(f"Loading {path}"):
        async with PulsarAdmin(admin_url, _CALL_SECONDS) as admin:
            loader = TopicLoader(admin, concurrency)
            await loader.load(topics, on_names_created)
    seconds = time.perf_counter() - started
    if skipped.count:
        typer.echo(str(skipped), err=True)
    counts = loader.names, len(loader.namespaces), seconds, loader.existing
    return Loaded(*counts, skipped.count)


async def _import(admin: PulsarAdmin, path: Path, *, skip_invalid: bool) -> dict[str, Any]:
    try:
        return await admin.floodgate.import_topics(str(path), skip_invalid=skip_invalid)
    except AdminRefusedError as error:
        if error.status in _NOT_FOUND and error.reason.startswith(NOT_SERVED):
            raise LoadgenError(f"{error.reason}: a Pulsar cannot import; add --rest.") from error
        raise


def _print(loaded: Loaded, path: Path, *, as_json: bool) -> None:
    """Print what was loaded, for people or for machines."""
    if as_json:
        sys.stdout.write(f"{json.dumps({'schema_version': 1, **vars(loaded)})}\n")
        return
    rate = loaded.topics / loaded.seconds if loaded.seconds else 0.0
    existing = f", {loaded.existing:,} topics existed already" if loaded.existing else ""
    skipped = f", {loaded.skipped:,} invalid topics were left out" if loaded.skipped else ""
    Console().print(
        f"Loaded {loaded.topics:,} names in {loaded.namespaces:,} namespaces from {path} "
        f"in {loaded.seconds:.1f} s ({rate:,.0f} a second{existing}{skipped})",
        soft_wrap=True,
    )
