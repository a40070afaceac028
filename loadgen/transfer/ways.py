"""The two ways into a server: a Floodgate imports files, any Pulsar creates topics one by one."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from client.admin.errors import AdminRefusedError
from client.admin.rest import NOT_SERVED
from client.admin.url import shown_url
from loadgen.access import admin_of
from loadgen.corpus.corpus import open_corpus, parquet_rows
from loadgen.corpus.source import is_parquet, read_topics
from loadgen.errors import ExitCode, LoadgenError
from loadgen.transfer.load_state import LoadState
from loadgen.transfer.loader import TopicLoader, admin_errors
from loadgen.transfer.verification import Verification, verify
from proto.invalid_rows import InvalidRows
from proto.names import NON_PERSISTENT, PERSISTENT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from client.admin.pulsar_admin import PulsarAdmin

    Progress = Callable[[int], None]

CALL_SECONDS = 120.0
IMPORT_SECONDS = 86_400.0
"""An import takes as long as it takes; a day bounds a server that has died."""
IMPORTS_AT_ONCE = 2
"""A broker reads one file in a thread while it takes the other one in."""
_NOT_FOUND = (404, 405)


@dataclass(frozen=True)
class Loaded:
    """The counts of one loading: topics, namespaces, seconds.

    Attributes:
        existing: Topics that were there before; ``None`` where the server does not tell.
        skipped: Invalid topics that were left out.
        resumed: Files, or topics, that an earlier load had done.
        retries: Calls that were made again.
        verified: Topics that the server lists as the manifest says; ``None`` if nobody asked it.
        not_verified: Non-persistent topics that were left out of that.
    """

    topics: int
    namespaces: int
    seconds: float
    existing: int | None = None
    skipped: int = 0
    resumed: int = 0
    retries: int = 0
    verified: int | None = None
    not_verified: int = 0
    report: str = ""


async def load_by_import(
    path: Path,
    admin_url: str,
    on_topics: Progress,
    *,
    skip_invalid: bool = False,
    resume: bool = False,
) -> Loaded:
    """Ask a Floodgate broker to import a path of its own file system, file by file.

    Raises:
        LoadgenError: The broker refused, is not there, or imported another number of topics.
    """
    where = shown_url(admin_url)
    state = _state(path, where, "import", resume=resume)
    files = _files(path)
    resumed = len(state.files)
    started, total = time.perf_counter(), Counter[str]()
    todo = iter([file for name, file in files.items() if name not in state.files])

    async def import_files(admin: PulsarAdmin) -> None:
        for file in todo:
            with admin_errors(f"The import of {file}", where):
                answer = await _import(admin, file, skip_invalid=skip_invalid)
            total.update(_counts(answer, file, where))
            state.file_done(file.name)
            on_topics(total["topics"])

    with admin_errors(f"The import of {path}", where):
        async with admin_of(admin_url, IMPORT_SECONDS) as admin:
            try:
                async with asyncio.TaskGroup() as tasks:
                    for _ in range(IMPORTS_AT_ONCE):
                        tasks.create_task(import_files(admin))
            except ExceptionGroup as group:
                raise group.exceptions[0] from None
    state.forget()
    seconds = time.perf_counter() - started
    counts = total["topics"], total["namespaces"], seconds
    return Loaded(*counts, skipped=total["skipped"], resumed=resumed)


def _files(path: Path) -> dict[str, Path]:
    """Return the files that a source has, as a server finds them, by their names."""
    path = path.resolve()
    return {file.name: file for file in (open_corpus(path).files if path.is_dir() else [path])}


async def _import(admin: PulsarAdmin, file: Path, *, skip_invalid: bool) -> dict[str, Any]:
    try:
        return await admin.floodgate.import_topics(str(file), skip_invalid=skip_invalid)
    except AdminRefusedError as error:
        if error.status in _NOT_FOUND and error.reason.startswith(NOT_SERVED):
            raise LoadgenError(f"{error.reason}: a Pulsar cannot import; add --rest.") from error
        raise


def _counts(answer: dict[str, Any], file: Path, where: str) -> dict[str, int]:
    """Return topics, namespaces and topics left out, as a broker tells them of one file."""
    try:
        counts = {name: int(answer[name]) for name in ("topics", "namespaces")}
        counts["skipped"] = int(answer.get("skipped", 0))
        float(answer["seconds"])
    except (KeyError, TypeError, ValueError) as error:
        raise LoadgenError(f"{where} answered {answer!r}, which is no import result.") from error
    expected = parquet_rows(file) if is_parquet(file) else None
    if expected is not None and counts["topics"] + counts["skipped"] != expected:
        raise LoadgenError(
            f"{file} holds {expected} topics, but the server says it imported {counts['topics']}.",
            ExitCode.CORRECTNESS,
        )
    return counts


async def load_by_rest(
    path: Path,
    admin_url: str,
    on_topics: Progress,
    concurrency: int,
    *,
    skip_invalid: bool = False,
    resume: bool = False,
) -> Loaded:
    """Create every topic of ``path`` through the admin REST API; invalid ones may be left out.

    Raises:
        LoadgenError: The server refused something, or is not there.
    """
    started = time.perf_counter()
    skipped = InvalidRows(path)
    topics = read_topics(path, skipped if skip_invalid else None)
    state = _state(path, shown_url(admin_url), "rest", resume=resume)
    resumed = state.topics
    with admin_errors(f"Loading {path}"):
        async with admin_of(admin_url, CALL_SECONDS) as admin:
            loader = TopicLoader(admin, concurrency)
            try:
                await loader.load(topics, on_topics, resumed, state.topics_done)
            except BaseException:
                state.save()
                raise
    state.forget()
    return Loaded(
        loader.names,
        len(loader.namespaces),
        time.perf_counter() - started,
        loader.existing,
        skipped.count,
        resumed,
        loader.retries.count,
        report=str(skipped) if skipped.count else "",
    )


def _state(path: Path, where: str, way: str, *, resume: bool) -> LoadState:
    state = LoadState(path, where, way)
    if resume:
        state.resume()
    else:
        state.forget()
    return state


async def verify_loaded(
    path: Path, admin_url: str, on_namespaces: Progress, *, imported: bool = False
) -> Verification:
    """Compare what a server lists with the manifest of a corpus.

    One that ``imported`` the files lists non-persistent topics as well.

    Raises:
        LoadgenError: It cannot be asked.
    """
    with admin_errors(f"Listing the topics of {path}", shown_url(admin_url)):
        async with admin_of(admin_url, CALL_SECONDS) as admin:
            domains = (PERSISTENT, NON_PERSISTENT) if imported else (PERSISTENT,)
            return await verify(admin, open_corpus(path), on_namespaces, domains)
