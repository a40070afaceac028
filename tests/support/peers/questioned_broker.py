"""A stand-in broker that compares hashes, answers on command, and can be wrong.

Independent: a client's hash is reimplemented rather than taken from Floodgate's broker.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import proto.PulsarApi_pb2 as pb
from proto.frames import encode_command
from proto.topic_hash import topics_hash
from tests.support.peers.stand_in_broker import StandInBroker, listing_body, listing_frame

if TYPE_CHECKING:
    from collections.abc import Callable

    Answering = Callable[[pb.CommandGetTopicsOfNamespace], bytes]


@dataclass
class QuestionedBroker(StandInBroker):
    """The broker's side of requests and answers.

    Attributes:
        asked: The hash of each listing request, or None, in order.
        go_on: Set to release waiting and later answers.
        answers_hash: Answers requests with a hash instead of the right answer.
        bodies_next: Bodies of the next answers, behind the request id.
        max_message_bytes: In CONNECTED; None to omit.
    """

    asked: list[str | None] = field(default_factory=list)
    go_on: asyncio.Event = field(default_factory=asyncio.Event)
    answers_hash: Answering | None = None
    bodies_next: list[bytes] = field(default_factory=list)
    max_message_bytes: int | None = None
    _writers: list[asyncio.StreamWriter] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def change(self, namespace: str, names: list[str]) -> None:
        """Replace a namespace's topics."""
        self.names[namespace] = names
        self._bodies.pop(namespace, None)

    def hang_up_now(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _answer(self, command: pb.BaseCommand, writer: asyncio.StreamWriter) -> bool:
        if command.type == pb.BaseCommand.GET_TOPICS_OF_NAMESPACE:
            request = command.getTopicsOfNamespace
            self.requests.append(request.namespace)
            self.asked.append(request.topics_hash if request.HasField("topics_hash") else None)
            task = asyncio.get_running_loop().create_task(self._reply(request, writer))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            return True
        if command.type == pb.BaseCommand.CONNECT and self.max_message_bytes is not None:
            writer.write(_connected_with(self.max_message_bytes))
            return True
        return await super()._answer(command, writer)

    async def _reply(
        self, request: pb.CommandGetTopicsOfNamespace, writer: asyncio.StreamWriter
    ) -> None:
        if writer not in self._writers:
            self._writers.append(writer)
        await self.go_on.wait()
        if not writer.is_closing():
            writer.write(self.answer(request))

    def answer(self, request: pb.CommandGetTopicsOfNamespace) -> bytes:
        """Return the frame that answers a request now."""
        if self.bodies_next:
            return listing_frame(request.request_id, self.bodies_next.pop(0))
        if not request.HasField("topics_hash"):
            return super().answer(request)
        if self.answers_hash is not None:
            return self.answers_hash(request)
        current = topics_hash(self.names.get(request.namespace, []))
        if request.topics_hash != current:
            return super().answer(request)
        return unchanged_frame(request.request_id, current)


def unchanged_frame(request_id: int, hash_text: str) -> bytes:
    """Return the recorded answer of a real broker to a correct hash."""
    return listing_frame(request_id, b"\x18\x00\x22\x08" + hash_text.encode() + b"\x28\x00")


def without_tail(names: list[str]) -> bytes:
    """Return a listing behind its request id, as brokers before the hash wrote it."""
    return listing_body(names)[: -len(b"\x18\x00\x22\x0812345678\x28\x00")]


def _connected_with(max_message_bytes: int) -> bytes:
    connected = pb.CommandConnected(
        server_version="stand-in", protocol_version=20, max_message_size=max_message_bytes
    )
    return encode_command(pb.BaseCommand(type=pb.BaseCommand.CONNECTED, connected=connected))
