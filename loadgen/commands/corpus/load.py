"""``loadgen load``: put topics into a running Floodgate, or into a Pulsar by its admin API."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path  # noqa: TC003 - Typer reads the annotations
from typing import Annotated

import typer
from rich.console import Console

from loadgen.commands.progress_bar import counting
from loadgen.errors import UsageError
from loadgen.places.loopback import CONFIRMATION_FLAG, require_own_cluster
from loadgen.topics.corpus import open_corpus
from loadgen.topics.listings import Verification  # noqa: TC001
from loadgen.topics.loading import Loaded, load_by_import, load_by_rest, verify_loaded
from loadgen.topics.reading import count_names


def load(  # noqa: PLR0913 - one parameter for each option
    path: Annotated[
        Path,
        typer.Argument(help="Directory that `loadgen topics` made, Parquet file, or text file."),
    ],
    admin_url: Annotated[
        str, typer.Option(metavar="URL", help="Web address of the broker.")
    ] = "http://127.0.0.1:8080",
    rest: Annotated[
        bool,
        typer.Option("--rest", help="Create each topic by admin REST, as a real Pulsar needs it."),
    ] = False,
    concurrency: Annotated[
        int,
        typer.Option(min=1, max=256, metavar="N", help="Parallel calls, with --rest."),
    ] = 16,
    skip_invalid: Annotated[
        bool,
        typer.Option(
            "--skip-invalid", help="Skip invalid topics (default: load nothing if any is invalid)."
        ),
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue a load that was interrupted.")
    ] = False,
    no_verify: Annotated[
        bool,
        typer.Option("--no-verify", help="Do not check afterwards what the server lists."),
    ] = False,
    confirmed: Annotated[
        bool,
        typer.Option(
            CONFIRMATION_FLAG, help="Allow an address other than this machine's loopback."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    r"""Create topics in a running server, and check that it lists all of them.

    A Floodgate broker reads the files itself, so it must see the same paths. With
    --rest each topic is one call, however many partitions it has: with
    `loadgen topics --partitions one-topic` a few calls make many names.

    Examples:
      loadgen load out/topics

      loadgen load out/topics --resume

      loadgen load topics.txt --rest --skip-invalid \
        --admin-url http://127.0.0.1:8080
    """
    require_own_cluster(admin_url, confirmed=confirmed)
    if not path.exists():
        raise UsageError(f"{path} does not exist; make a corpus with: loadgen topics --out {path}")
    names = count_names(path)
    if rest:
        with counting(f"Creating the topics of {path}", names) as on_topics:
            way = load_by_rest(
                path, admin_url, on_topics, concurrency, skip_invalid=skip_invalid, resume=resume
            )
            loaded = asyncio.run(way)
    else:
        with counting(f"Importing {path}", names) as on_topics:
            importing = load_by_import(
                path, admin_url, on_topics, skip_invalid=skip_invalid, resume=resume
            )
            loaded = asyncio.run(importing)
    if loaded.report:
        typer.echo(loaded.report, err=True)
    if not no_verify and path.is_dir() and not loaded.skipped:
        found = _verified(path, admin_url, imported=not rest)
        loaded = replace(loaded, verified=found.topics, not_verified=found.left_out)
    _print(loaded, path, as_json=as_json)


def _verified(path: Path, admin_url: str, *, imported: bool) -> Verification:
    """Compare what the server lists with the corpus.

    Raises:
        LoadgenError: Something differs, or it cannot be asked.
    """
    namespaces = len(open_corpus(path).manifest.namespaces)
    with counting(f"Listing {namespaces:,} namespaces", namespaces) as on_namespaces:
        found = asyncio.run(verify_loaded(path, admin_url, on_namespaces, imported=imported))
    found.require()
    return found


def _print(loaded: Loaded, path: Path, *, as_json: bool) -> None:
    """Print what was loaded, for people or for machines."""
    if as_json:
        fields = {name: value for name, value in asdict(loaded).items() if name != "report"}
        sys.stdout.write(f"{json.dumps({'schema_version': 1, **fields})}\n")
        return
    rate = loaded.topics / loaded.seconds if loaded.seconds else 0.0
    existing = f", {loaded.existing:,} topics existed already" if loaded.existing else ""
    skipped = f", {loaded.skipped:,} invalid topics were left out" if loaded.skipped else ""
    retries = f", {loaded.retries:,} calls were made again" if loaded.retries else ""
    resumed = f", after {loaded.resumed:,} that were done before" if loaded.resumed else ""
    Console().print(
        f"Loaded {loaded.topics:,} names in {loaded.namespaces:,} namespaces from {path} "
        f"in {loaded.seconds:.1f} s ({rate:,.0f} a second{existing}{skipped}{retries}{resumed})",
        soft_wrap=True,
    )
    if loaded.verified is not None:
        rest = "all of them"
        if loaded.not_verified:
            rest = (
                f"all {loaded.verified:,} persistent ones; the {loaded.not_verified:,} "
                "non-persistent ones are not compared, as a Pulsar lists those only while they are "
                "used"
            )
        Console().print(f"The server lists {rest}", soft_wrap=True)
