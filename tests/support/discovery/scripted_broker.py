"""A broker for one consumer of a pattern: it does as a script says, and writes down what it sees.

It knows nothing of Floodgate. Every topic is its own, every SUBSCRIBE is accepted; what becomes of
a listing or watch is the script's business.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import proto.PulsarApi_pb2 as pb
from proto.frames import encode_command
from proto.parsing.parser import parse_command
from proto.topic_hash import topics_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.discovery.scripts import Script

Type = pb.BaseCommand
BASE = "persistent://public/default/"
_QUIET = (Type.PING, Type.PONG, Type.FLOW, Type.ACK, Type.PARTITIONED_METADATA)


@dataclass
class ScriptedBroker:
    """A broker that follows a script.

    Attributes:
        topics: Local names of the namespace's topics.
        seen: What came and what was done, in order, with seconds since the first listing.
    """

    script: Script
    topics: set[str] = field(init=False)
    seen: list[dict[str, Any]] = field(default_factory=list)
    _started: float | None = None
    _counts: dict[str, int] = field(default_factory=dict)
    _watches: dict[int, tuple[asyncio.StreamWriter, str]] = field(default_factory=dict)
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _server: asyncio.Server | None = None
    _port: int = 0
    first_listing: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.topics = set(self.script.topics)

    async def listen(self) -> str:
        """Listen, again on the same port, and return the service URL."""
        self._server = await asyncio.start_server(self._converse, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]
        return f"pulsar://127.0.0.1:{self._port}"

    def note(self, what: str, **fields: object) -> None:
        """Write down something that happened."""
        now = asyncio.get_running_loop().time()
        if self._started is None and what == "list":
            self._started = now
            self.first_listing.set()
        at = round(now - self._started, 2) if self._started is not None else None
        self.seen.append({"at": at, "what": what, **fields})

    # -- events -------------------------------------------------------------------------------

    async def happen(self, event: str) -> None:
        """Do one thing of the script."""
        verb, _, name = event.partition(" ")
        self.note("event", event=event)
        if verb == "create":
            self.topics.add(name)
            self._push([name], [])
        elif verb == "delete":
            self.topics.discard(name)
            self._push([], [name])
        elif verb == "create-unseen":
            self.topics.add(name)
        elif verb == "delete-unseen":
            self.topics.discard(name)
        elif verb == "drop":
            self._drop()
        elif verb == "down":
            assert self._server is not None
            self._server.close()
            self._drop()
        elif verb == "up":
            await self.listen()
        else:
            raise AssertionError(event)

    def _drop(self) -> None:
        self._watches.clear()
        for writer in self._writers:
            writer.transport.abort()

    def _push(self, new: list[str], gone: list[str]) -> None:
        for watcher, (writer, pattern) in self._watches.items():
            update = pb.CommandWatchTopicUpdate(watcher_id=watcher)
            update.new_topics.extend(BASE + name for name in new)
            update.deleted_topics.extend(BASE + name for name in gone)
            update.topics_hash = topics_hash(self._matching(pattern))
            writer.write(
                encode_command(Type(type=Type.WATCH_TOPIC_UPDATE, watchTopicUpdate=update))
            )

    # -- conversation -------------------------------------------------------------------------

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while True:
                total = int.from_bytes(await reader.readexactly(4), "big")
                command = parse_command((await reader.readexactly(total))[4:])
                if (answer := self._answer(command, writer)) is not None:
                    writer.write(encode_command(answer))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    def _answer(self, command: pb.BaseCommand, writer: asyncio.StreamWriter) -> Type | None:
        kind = command.type
        if kind == Type.CONNECT:
            self.note("connect")
            connected = pb.CommandConnected(server_version="scripted", protocol_version=21)
            connected.max_message_size = 5_242_880
            flags = connected.feature_flags
            flags.supports_topic_watchers = self.script.watchers
            flags.supports_topic_watcher_reconcile = self.script.reconcile
            return Type(type=Type.CONNECTED, connected=connected)
        if kind == Type.PING:
            return Type(type=Type.PONG, pong=pb.CommandPong())
        if kind in _ANSWERS:
            return _ANSWERS[kind](self, command, writer)
        assert kind in _QUIET, command
        return None

    def _partitions(self, command: Type, _: object) -> Type:
        asked = command.partitionMetadata
        answer = pb.CommandPartitionedTopicMetadataResponse(request_id=asked.request_id)
        start = asked.topic + "-partition-"
        answer.partitions = sum((BASE + name).startswith(start) for name in self.topics)
        answer.response = pb.CommandPartitionedTopicMetadataResponse.Success
        kind = Type.PARTITIONED_METADATA_RESPONSE
        return Type(type=kind, partitionMetadataResponse=answer)

    def _lookup(self, command: Type, _: object) -> Type | None:
        asked = command.lookupTopic
        answer = pb.CommandLookupTopicResponse(request_id=asked.request_id)
        if re.fullmatch(r"[-\w:/.]+", asked.topic):  # a topic, not a pattern
            answer.response = pb.CommandLookupTopicResponse.Connect
        else:
            step = self._step("lookup")
            self.note("lookup", topic=asked.topic, answer=step)
            if step == "silence":
                return None
            if step == "answer":
                answer.response = pb.CommandLookupTopicResponse.Connect
            else:
                answer.response = pb.CommandLookupTopicResponse.Failed
                answer.error = pb.ServerError.Value(step)
                answer.message = "as the script says"
        answer.brokerServiceUrl = f"pulsar://127.0.0.1:{self._port}"
        answer.authoritative = True
        return Type(type=Type.LOOKUP_RESPONSE, lookupTopicResponse=answer)

    def _list(self, command: Type, _: object) -> Type | None:
        asked = command.getTopicsOfNamespace
        fields: dict[str, object] = {"mode": asked.mode}
        if asked.HasField("topics_pattern"):
            fields["pattern"] = asked.topics_pattern
        if asked.HasField("topics_hash"):
            fields["hash"] = asked.topics_hash
        if asked.properties:
            fields["properties"] = {one.key: one.value for one in asked.properties}
        step = self._step("list")
        self.note("list", **fields, answer=step)
        if step == "silence":
            return None
        if step != "answer":
            return _error(asked.request_id, step)
        names = self._matching(asked.topics_pattern or ".*")
        answer = pb.CommandGetTopicsOfNamespaceResponse(request_id=asked.request_id)
        answer.filtered = asked.HasField("topics_pattern")
        answer.topics_hash = topics_hash(names)
        answer.changed = answer.topics_hash != asked.topics_hash
        if answer.changed:
            answer.topics.extend(names)
        kind = Type.GET_TOPICS_OF_NAMESPACE_RESPONSE
        return Type(type=kind, getTopicsOfNamespaceResponse=answer)

    def _watch(self, command: Type, writer: asyncio.StreamWriter) -> Type | None:
        asked = command.watchTopicList
        step = self._step("watch")
        self.note(
            "watch",
            watcher=asked.watcher_id,
            pattern=asked.topics_pattern,
            hash=asked.topics_hash if asked.HasField("topics_hash") else None,
            answer=step,
        )
        if step == "silence":
            return None
        if step != "answer":
            return _error(asked.request_id, step)
        self._watches[asked.watcher_id] = writer, asked.topics_pattern
        names = self._matching(asked.topics_pattern)
        answer = pb.CommandWatchTopicListSuccess(
            request_id=asked.request_id, watcher_id=asked.watcher_id
        )
        answer.topics_hash = topics_hash(names)
        if answer.topics_hash != asked.topics_hash:
            answer.topic.extend(names)
        return Type(type=Type.WATCH_TOPIC_LIST_SUCCESS, watchTopicListSuccess=answer)

    def _close_watch(self, command: Type, _: object) -> Type:
        asked = command.watchTopicListClose
        self.note("close watch", watcher=asked.watcher_id)
        self._watches.pop(asked.watcher_id, None)
        return _success(asked.request_id)

    def _subscribe(self, command: Type, _: object) -> Type:
        asked = command.subscribe
        local = asked.topic.removeprefix(BASE)
        self.note("subscribe", topic=local, creates=asked.force_topic_creation)
        return _success(asked.request_id)

    def _unsubscribe(self, command: Type, _: object) -> Type:
        self.note("unsubscribe")
        return _success(command.unsubscribe.request_id)

    def _close_consumer(self, command: Type, _: object) -> Type:
        self.note("close consumer")
        return _success(command.close_consumer.request_id)

    def _step(self, kind: str) -> str:
        """Return what the script has for the next command of a kind; at its end: an answer."""
        number = self._counts[kind] = self._counts.get(kind, 0) + 1
        steps = self.script.steps.get(kind, ())
        return steps[number - 1] if number <= len(steps) else "answer"

    def _matching(self, pattern: str) -> list[str]:
        compiled = re.compile(pattern.replace("persistent://", "", 1))
        found = (BASE + name for name in sorted(self.topics))
        return [
            one
            for one in found
            if compiled.fullmatch(re.sub(r"-partition-\d+$", "", one.partition("://")[2]))
        ]


_ANSWERS: dict[int, Callable[[ScriptedBroker, Any, Any], Type | None]] = {
    Type.PARTITIONED_METADATA: ScriptedBroker._partitions,
    Type.LOOKUP: ScriptedBroker._lookup,
    Type.GET_TOPICS_OF_NAMESPACE: ScriptedBroker._list,
    Type.WATCH_TOPIC_LIST: ScriptedBroker._watch,
    Type.WATCH_TOPIC_LIST_CLOSE: ScriptedBroker._close_watch,
    Type.SUBSCRIBE: ScriptedBroker._subscribe,
    Type.UNSUBSCRIBE: ScriptedBroker._unsubscribe,
    Type.CLOSE_CONSUMER: ScriptedBroker._close_consumer,
}


def _success(request_id: int) -> Type:
    return Type(type=Type.SUCCESS, success=pb.CommandSuccess(request_id=request_id))


def _error(request_id: int, code: str) -> Type:
    error = pb.CommandError(request_id=request_id, error=pb.ServerError.Value(code))
    error.message = "as the script says"
    return Type(type=Type.ERROR, error=error)
