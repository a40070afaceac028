"""Binary commands about topics as rows of growth."""

import asyncio
import re
from collections.abc import Callable
from functools import partial

import proto.PulsarApi_pb2 as pb
from client import Client
from limiter.clock import LoopClock, deadline
from tests.proof.growth.asking import Answer, Asker
from tests.proof.growth.corpus import ENTRY_BYTES, TEAMS
from tests.proof.growth.measuring import Stage
from tests.proof.result import ProofError

Type = pb.BaseCommand
MODES = pb.CommandGetTopicsOfNamespace
MORE_BYTES = 16_384
"""Bytes of a list beside the corpus: its head, and topics of other rows."""
CLIENT_SECONDS = 60.0
NAMESPACES_LISTED = 1_000
_HASH = re.compile(rb'"\x08([0-9a-f]{8})')
"""Field 4 of a list, topics_hash."""


def listing(asker: Asker, namespace: str, **fields: object) -> Answer:
    request = pb.CommandGetTopicsOfNamespace(
        request_id=asker.next_id(), namespace=namespace, **fields
    )
    kind = Type.GET_TOPICS_OF_NAMESPACE
    return asker.ask(pb.BaseCommand(type=kind, getTopicsOfNamespace=request))


def partitions_request(asker: Asker, topic: str) -> pb.BaseCommand:
    request = pb.CommandPartitionedTopicMetadata(topic=topic, request_id=asker.next_id())
    return pb.BaseCommand(type=Type.PARTITIONED_METADATA, partitionMetadata=request)


def check_names(size_bytes: int, names: int) -> None:
    """Compare the size of a list with its expected size.

    Raises:
        ProofError: The sizes differ.
    """
    wanted = names * ENTRY_BYTES
    if not wanted <= size_bytes <= wanted + MORE_BYTES:
        raise ProofError(f"{size_bytes:,} bytes came, wanted were those of {names:,} names")


def _hash_in(answer: Answer) -> str:
    if answer.command is not None:
        return answer.command.getTopicsOfNamespaceResponse.topics_hash
    found = _HASH.search(answer.tail)
    if found is None:
        raise ProofError(f"a list without a hash ends with {answer.tail!r}")
    return found.group(1).decode()


class BinaryCommands:
    """The commands, each on a connection of one way."""

    def __init__(self, stage: Stage, way: str) -> None:
        self._stage = stage
        self._way = way
        self._corpus = stage.corpus
        self._url = stage.urls[way]["service_url"]
        self._namespace = stage.corpus.namespace(0)

    def measure_all(self) -> None:
        with Asker(self._url) as asker:
            for what, work in self._asked(asker):
                self._stage.measure(what, self._way, work)
        self._stage.measure("client: produce and consume", self._way, self._exchange)
        self._stage.measure("client: a new topic", self._way, self._new_topic)

    def _asked(self, asker: Asker) -> list[tuple[str, Callable[[], object]]]:
        corpus = self._corpus
        rows: list[tuple[str, Callable[[], object]]] = [
            ("PARTITIONED_METADATA", partial(self._partitions, asker, corpus.partitioned, 4)),
            ("PARTITIONED_METADATA, of none", partial(self._partitions, asker, corpus.topic, 0)),
            ("LOOKUP", partial(self._lookup, asker, corpus.topic)),
            ("GET_SCHEMA", partial(self._schema, asker)),
            ("GET_TOPICS", partial(self._list, asker, mode=MODES.PERSISTENT)),
            ("GET_TOPICS, again", partial(self._list, asker, mode=MODES.PERSISTENT)),
            ("GET_TOPICS, both domains", partial(self._list, asker, mode=MODES.ALL)),
            ("GET_TOPICS, unchanged", partial(self._unchanged, asker)),
            ("GET_TOPICS, by a property", partial(self._described, asker)),
            ("GET_TOPICS, another namespace", partial(listing, asker, "public/default")),
        ]
        if corpus.namespaces > 1:
            rows.append(("GET_TOPICS of 1,000 namespaces", partial(self._many, asker)))
        return rows

    def _partitions(self, asker: Asker, topic: str, wanted: int) -> None:
        command = asker.ask(partitions_request(asker, topic)).command
        found = command.partitionMetadataResponse if command is not None else None
        if found is None or found.partitions != wanted:
            raise ProofError(f"partitions: {found}")

    def _lookup(self, asker: Asker, topic: str) -> None:
        request = pb.CommandLookupTopic(topic=topic, request_id=asker.next_id())
        command = asker.ask(pb.BaseCommand(type=Type.LOOKUP, lookupTopic=request)).command
        response = command.lookupTopicResponse if command is not None else None
        if response is None or response.response == pb.CommandLookupTopicResponse.Failed:
            raise ProofError(f"lookup: {response}")

    def _schema(self, asker: Asker) -> None:
        request = pb.CommandGetSchema(request_id=asker.next_id(), topic=self._corpus.topic)
        asker.ask(pb.BaseCommand(type=Type.GET_SCHEMA, getSchema=request))

    def _list(self, asker: Asker, **fields: object) -> Answer:
        answer = listing(asker, self._namespace, **fields)
        check_names(answer.size_bytes, self._corpus.each)
        return answer

    def _unchanged(self, asker: Asker) -> None:
        answer = listing(asker, self._namespace, topics_hash="")
        answer = listing(asker, self._namespace, topics_hash=_hash_in(answer))
        if answer.command is None or answer.command.getTopicsOfNamespaceResponse.changed:
            raise ProofError(f"{answer.size_bytes:,} bytes came for what is known")

    def _described(self, asker: Asker) -> None:
        team = pb.KeyValue(key="team", value="team-7")
        answer = listing(asker, self._namespace, properties=[team])
        check_names(answer.size_bytes, self._corpus.each // TEAMS)

    def _many(self, asker: Asker) -> None:
        for number in range(min(NAMESPACES_LISTED, self._corpus.namespaces)):
            answer = listing(asker, self._corpus.namespace(number))
            check_names(answer.size_bytes, self._corpus.each)

    # -- clients ------------------------------------------------------------------------------

    def _exchange(self) -> None:
        asyncio.run(self._pass_message(self._corpus.topic))

    def _new_topic(self) -> None:
        name = f"persistent://{self._namespace}/new-{self._stage.fresh()}"
        asyncio.run(self._pass_message(name))

    async def _pass_message(self, topic: str) -> None:
        async with deadline(LoopClock(), CLIENT_SECONDS):
            client = Client(self._url)
            consumer = await client.subscribe(topic, f"growth-{self._stage.fresh()}")
            producer = await client.create_producer(topic)
            await producer.send(b"one")
            await consumer.acknowledge(await consumer.receive())
            await consumer.unsubscribe()
            await client.close()
