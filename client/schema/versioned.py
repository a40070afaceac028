"""Values that are read by the schema that their own producer had."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Generic, TypeVar

import proto.PulsarApi_pb2 as pb
from client.exceptions import PulsarException, server_response_error
from client.schema.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.messages.message import Decoding, EntryHead
    from client.pulsar_client import PulsarClient

logger = logging.getLogger(__name__)

MAX_VERSIONS = 100
"""Versions of one topic that are remembered; behind that, the one unused for longest goes."""
ItemT = TypeVar("ItemT")


class VersionedSchema(Schema):
    """A schema whose values are read by the version of it that their producer had."""

    def decoding_of(self, info: pb.Schema) -> Decoding:
        """Return what reads the values of a version.

        Raises:
            ValueError: This schema cannot read them.
        """
        raise NotImplementedError


class WriterSchemas(Generic[ItemT]):
    """Lets the entries of a topic pass, in order, as soon as the schema of each is known.

    A version is asked for once, and then remembered. If the broker does not tell it, a line is
    logged, and the values are read by the schema itself.

    Args:
        schema: Reads the values.
        topic: Full name.
        cluster: Where the versions are asked for.
        deliver: Takes an entry's item, in its turn; ``entry.schema`` is that of its version.
    """

    def __init__(
        self,
        schema: VersionedSchema,
        topic: str,
        cluster: PulsarClient,
        deliver: Callable[[ItemT], None],
    ) -> None:
        self._schema = schema
        self._topic = topic
        self._cluster = cluster
        self._deliver = deliver
        self._versions: OrderedDict[bytes, Decoding] = OrderedDict()
        # As many as the consumer has permits.
        self._held: deque[tuple[EntryHead, ItemT]] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def held(self) -> int:
        """How many entries wait for their schema, or behind one that does."""
        return len(self._held)

    def receive(self, entry: EntryHead, item: ItemT) -> None:
        """Deliver an entry's item, at once if nothing is in its way."""
        if not self._held and self._known(entry):
            self._deliver(item)
            return
        self._held.append((entry, item))
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._pass_held())

    def clear(self) -> list[ItemT]:
        """Forget the entries that wait, which are sent again, and return their items."""
        items = [item for _, item in self._held]
        self._held.clear()
        return items

    async def close(self) -> None:
        """Ask no more; what waits is dropped."""
        self._held.clear()
        task = self._task
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def _known(self, entry: EntryHead) -> bool:
        """Give an entry the schema of its version, if that is known."""
        version = entry.metadata.schema_version
        if not version:
            return True
        found = self._versions.get(version)
        if found is None:
            return False
        self._versions.move_to_end(version)
        entry.schema = found
        return True

    async def _pass_held(self) -> None:
        try:
            while self._held:
                entry, _ = self._held[0]
                if not self._known(entry):
                    await self._ask(entry.metadata.schema_version)
                self._pass_known()
        finally:
            self._task = None

    def _pass_known(self) -> None:
        while self._held and self._known(self._held[0][0]):
            self._deliver(self._held.popleft()[1])

    async def _ask(self, version: bytes) -> None:
        """Learn a version; if that fails, those that wait for it are read by the schema itself."""
        try:
            info = await get_schema(self._cluster, self._topic, version)
            self._versions[version] = self._schema.decoding_of(info)
        except (PulsarException, ValueError) as error:
            text = "%s: version %s of the schema is not known, and values are read without it: %s"
            logger.warning(text, self._topic, version.hex(), error)
            while self._held and self._held[0][0].metadata.schema_version == version:
                self._deliver(self._held.popleft()[1])
            return
        if len(self._versions) > MAX_VERSIONS:
            self._versions.popitem(last=False)


async def get_schema(cluster: PulsarClient, topic: str, version: bytes) -> pb.Schema:
    """Return a version of a topic's schema, as the broker has it.

    Args:
        cluster: Where it is asked for.
        topic: Full name.
        version: As it stands in messages; b"" for the newest.

    Raises:
        PulsarException: The broker does not have it, or cannot be asked.
    """

    def build(request_id: int) -> pb.BaseCommand:
        question = pb.CommandGetSchema(request_id=request_id, topic=topic)
        if version:
            question.schema_version = version
        return pb.BaseCommand(type=pb.BaseCommand.GET_SCHEMA, getSchema=question)

    cnx = await cluster.connection_of(topic)
    answer = (await cnx.request(build)).getSchemaResponse
    if answer.HasField("error_code"):
        raise server_response_error(answer.error_code, answer.error_message)
    return answer.schema
