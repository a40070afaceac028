"""Two ways to load topics into a server: importing files, or creating topics one by one.

Only Floodgate imports files.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, ValidationError

from client.admin.errors import AdminError, AdminRefusedError
from client.admin.rest import NOT_SERVED
from client.admin.url import shown_url
from loadgen.access import admin_of
from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.stored import StoredPath
from loadgen.topics.calls import CALL_SECONDS, Retries, admin_errors, side_by_side
from loadgen.topics.corpus import open_corpus, parquet_rows
from loadgen.topics.lists import is_parquet
from loadgen.topics.load_state import LoadState
from loadgen.topics.reading import read_topics
from proto.invalid_rows import InvalidRows

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterable
    from pathlib import Path

    from client.admin.pulsar_admin import PulsarAdmin
    from loadgen.topics.reading import TopicToCreate
    from proto.names import NamespaceName

    Progress = Callable[[int], None]

IMPORT_SECONDS = 86_400.0
"""Timeout of an import, a day: imports have no usual length, but a server may have died."""
IMPORTS_AT_ONCE = 2
"""Two, so that a broker reads a file in a thread while it stores another."""
LOOK_SECONDS = 1.0
"""Seconds between two polls of the imports' progress."""
_NOT_FOUND = (404, 405)
_EXISTS = 409


@dataclass(frozen=True)
class Loaded:
    """The result of loading topics: the numbers of topics and namespaces, and the seconds.

    Attributes:
        existing: Topics that existed before; None if the server does not report them.
        skipped: Number of invalid topics that were left out.
        resumed: Number of files, or topics, that an earlier load had loaded.
        retries: Number of repeated calls.
        verified: Number of topics that the server lists like the manifest; None if not verified.
        not_verified: Number of non-persistent topics, which were not verified.
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
    """Make a Floodgate broker import topics, file by file, from its own file system.

    Raises:
        LoadgenError: The broker refused, cannot be reached, or imported another number of topics.
    """
    started, where = time.perf_counter(), shown_url(admin_url)
    total = _Imported(topics=0, namespaces=0)
    with LoadState(path, where, "import", resume=resume) as state:
        resumed = state.done
        files = _files(path)
        todo = islice(enumerate(files), resumed, None)

        async def import_files() -> None:
            for number, file in todo:
                with admin_errors(f"The import of {file}", where):
                    found = await _import(admin, file, where, skip_invalid=skip_invalid)
                total.topics += found.topics
                total.namespaces += found.namespaces
                total.skipped += found.skipped
                state.item_done(number)
                on_topics(total.topics)

        async def look_at_imports() -> None:
            with suppress(AdminError):  # Older brokers have no such page.
                while True:
                    await asyncio.sleep(LOOK_SECONDS)
                    found = await admin.floodgate.imports()
                    on_topics(total.topics + sum(found.get(str(file), 0) for file in files))

        with admin_errors(f"The import of {path}", where):
            async with admin_of(admin_url, IMPORT_SECONDS) as admin:
                looking = asyncio.create_task(look_at_imports())
                try:
                    await side_by_side(IMPORTS_AT_ONCE, import_files)
                finally:
                    looking.cancel()
    seconds = time.perf_counter() - started
    return Loaded(**total.model_dump(), seconds=seconds, resumed=resumed)


class _Imported(BaseModel):
    """A broker's answer to an import: the numbers of topics, namespaces and invalid topics."""

    topics: int
    namespaces: int
    skipped: int = 0


def _files(path: Path) -> tuple[Path, ...]:
    """Return the files that a broker is to import, in order.

    Raises:
        UsageError: The files cannot be found.
    """
    path = path.resolve()
    if isinstance(path, StoredPath):
        raise UsageError(
            f"{path}: a broker imports files that its own machine has: copy the folder there, or "
            "create the topics one by one with --rest"
        )
    return open_corpus(path).files if path.is_dir() else (path,)


async def _import(admin: PulsarAdmin, file: Path, where: str, *, skip_invalid: bool) -> _Imported:
    try:
        answer = await admin.floodgate.import_topics(str(file), skip_invalid=skip_invalid)
    except AdminRefusedError as error:
        if error.status in _NOT_FOUND and error.reason.startswith(NOT_SERVED):
            raise LoadgenError(f"{error.reason}: Pulsar imports no files; add --rest.") from error
        raise
    try:
        found = _Imported.model_validate(answer)
    except ValidationError as error:
        raise LoadgenError(f"{where} answered {answer!r}, which is no import result.") from error
    expected = parquet_rows(file) if is_parquet(file) else None
    if expected not in (None, found.topics + found.skipped):
        said = f"{file} holds {expected} topics, but the server says it imported {found.topics}."
        raise LoadgenError(said, ExitCode.CORRECTNESS)
    return found


async def load_by_rest(
    path: Path,
    admin_url: str,
    on_topics: Progress,
    concurrency: int,
    *,
    skip_invalid: bool = False,
    resume: bool = False,
) -> Loaded:
    """Create all topics of ``path`` one by one through the admin REST API.

    Raises:
        LoadgenError: The server refused a call, or cannot be reached.
    """
    started, skipped = time.perf_counter(), InvalidRows(path)
    topics = read_topics(path, skipped if skip_invalid else None)
    with LoadState(path, shown_url(admin_url), "rest", resume=resume) as state:
        resumed = state.done
        with admin_errors(f"Loading {path}"):
            async with admin_of(admin_url, CALL_SECONDS) as admin:
                loader = TopicLoader(admin, concurrency)
                await loader.load(topics, on_topics, resumed, state.item_done)
    seconds, retries = time.perf_counter() - started, loader.retries.count
    counts = loader.names, len(loader.namespaces), seconds, loader.existing, skipped.count
    report = str(skipped) if skipped.count else ""
    return Loaded(*counts, resumed, retries, report=report)


@dataclass
class TopicLoader:
    """Creates topics through admin REST like ``pulsar-admin``, and first tenants and namespaces.

    Topics that already exist (409) count as created.

    Attributes:
        concurrency: The largest number of calls in flight.
        names: Number of listed names created or found: a partitioned topic counts its partitions.
        existing: Number of topics (not names) that already existed.
    """

    admin: PulsarAdmin
    concurrency: int
    retries: Retries = field(default_factory=Retries)
    namespaces: set[NamespaceName] = field(default_factory=set)
    names: int = 0
    existing: int = 0
    _tenants: set[str] = field(default_factory=set)
    _preparing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def load(
        self,
        topics: Iterable[TopicToCreate],
        on_names_created: Callable[[int], None],
        skip: int = 0,
        on_topic_done: Callable[[int], None] = lambda _: None,
    ) -> None:
        """Create topics by parallel calls; the first error ends the load.

        Args:
            topics: The topics, in an order that is the same in a repeated load.
            on_names_created: Called with the number of names created so far.
            skip: Number of topics, counted from the first, that exist already.
            on_topic_done: Called with the number of each created topic, in any order.

        Raises:
            LoadgenError: The server refused a call, or cannot be reached.
        """
        numbered = enumerate(topics)
        for _, topic in islice(numbered, skip):
            self.names += max(topic.partitions, 1)
            self.namespaces.add(topic.name.namespace)

        async def create() -> None:
            for number, topic in numbered:
                await self.prepare(topic.name.namespace)
                created = await self._create(f"topic {topic.name}", self._create_topic, topic)
                self.existing += not created
                self.names += max(topic.partitions, 1)
                on_topic_done(number)
                on_names_created(self.names)

        await side_by_side(self.concurrency, create)

    async def _create_topic(self, topic: TopicToCreate) -> None:
        topics = self.admin.topics
        if topic.partitions:
            await topics.create_partitioned(topic.name, topic.partitions, topic.properties)
        else:
            await topics.create(topic.name, topic.properties)

    async def prepare(self, namespace: NamespaceName) -> None:
        """Create a namespace and its tenant, unless this loader has already created them."""
        tenant = namespace.tenant
        async with self._preparing:
            if tenant not in self._tenants:
                await self._create(f"tenant {tenant}", self.admin.tenants.create, tenant)
                self._tenants.add(tenant)
            if namespace not in self.namespaces:
                create = self.admin.namespaces.create
                await self._create(f"namespace {namespace}", create, namespace)
                self.namespaces.add(namespace)

    async def _create(
        self, what: str, call: Callable[..., Coroutine[Any, Any, None]], *arguments: object
    ) -> bool:
        """Create an object through the admin client; return False if the object already existed."""
        with admin_errors(f"Creating {what}"):
            try:
                await self.retries.call(lambda: call(*arguments))
            except AdminRefusedError as error:
                if error.status != _EXISTS:
                    raise
                return False
        return True
