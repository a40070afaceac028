"""A broker of plain values below a load's connections, on a virtual loop.

Answers, refuses or stays silent as scripted; commands are passed without bytes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

import proto.PulsarApi_pb2 as pb
from limiter.clock import Clock
from loadgen.engine.answer_stream import Listing
from loadgen.engine.connection import LoadConnection
from proto.topic_hash import topics_hash

BASE = "persistent://public/default/"
URL, OTHER_URL = "pulsar://broker:6650", "pulsar://other:6650"
Type = pb.BaseCommand


@dataclass
class ScriptedBroker:
    """A broker, optionally behind a proxy, and its clients' connections: a Connects.

    Attributes:
        topics: Full names, all in one namespace.
        steps: Per kind of request the outcomes in order: ``answer``, ``silence`` or an error's
            name; later ones ``answer``.
        delays: Seconds that answers to a kind of request take; default 0.
        earliest: Moment before which a kind of request gets no answer.
        asked: Each request's time, kind and fields.
        open: Open connections.
        made: Servers of the connections made; None is the service URL.
        redirects: Number of lookups to redirect to another broker.
    """

    clock: Clock
    topics: set[str] = field(default_factory=lambda: {BASE + "t-a", BASE + "t-b"})
    steps: dict[str, list[str]] = field(default_factory=dict)
    delays: dict[str, float] = field(default_factory=dict)
    earliest: dict[str, float] = field(default_factory=dict)
    watches: bool = True
    reconciles: bool = False
    proxied: bool = False
    redirects: int = 0
    down: bool = False
    service: str = "broker:6650"
    asked: list[tuple[float, str, dict[str, Any]]] = field(default_factory=list)
    open: list[ScriptedTransport] = field(default_factory=list)
    made: list[str | None] = field(default_factory=list)

    async def resolve(self, service_url: str, connections: int = 1) -> None:
        """A no-op."""

    async def connect(
        self, client: LoadConnection, receive_buffer_bytes: int, other: str | None = None
    ) -> str | None:
        if self.down:
            return "Connection refused"
        transport = ScriptedTransport(self, client)
        self.open.append(transport)
        self.made.append(other)
        client.connection_made(transport)
        return None

    def drop(self) -> None:
        lost, self.open = self.open, []
        for each in lost:
            each.client.connection_lost(ConnectionResetError("reset"))

    def kinds(self) -> list[str]:
        """Kinds of the requests, in order."""
        return [kind for _, kind, _ in self.asked]

    def change(self, name: str, *, told: bool = True) -> None:
        """Create a topic, or delete an existing one."""
        self.topics ^= {BASE + name}
        for each in self.open if told else ():
            if each.watching:
                update = pb.CommandWatchTopicUpdate(
                    watcher_id=1, topics_hash=topics_hash(self.matching(each.watching))
                )
                names = update.new_topics if BASE + name in self.topics else update.deleted_topics
                names.append(BASE + name)
                each.client.receive(Type(type=Type.WATCH_TOPIC_UPDATE, watchTopicUpdate=update))

    def matching(self, pattern: str) -> list[str]:
        return sorted(name for name in self.topics if re.fullmatch(pattern, name))


class ScriptedTransport(asyncio.Transport):
    def __init__(self, broker: ScriptedBroker, client: LoadConnection) -> None:
        super().__init__()
        self.broker = broker
        self.client = client
        self.watching = ""
        self.paused = self.closed = False

    def is_closing(self) -> bool:
        return self.closed

    def abort(self) -> None:
        self.closed = True
        if self in self.broker.open:
            self.broker.open.remove(self)

    def pause_reading(self) -> None:
        self.paused = True

    def resume_reading(self) -> None:
        self.paused = False

    def write(self, data: bytes) -> None:
        command = Type.FromString(data[8:])
        getattr(self, f"_{Type.Type.Name(command.type).lower()}", lambda _: None)(command)

    def _connect(self, _: pb.BaseCommand) -> None:
        connected = pb.CommandConnected(server_version="scripted")
        connected.feature_flags.supports_topic_watchers = self.broker.watches
        connected.feature_flags.supports_topic_watcher_reconcile = self.broker.reconciles
        self.client.receive(Type(type=Type.CONNECTED, connected=connected))

    def _request(
        self, kind: str, request_id: int, fields: dict[str, Any], answer: Callable[[], None]
    ) -> None:
        broker = self.broker
        assert self in broker.open, "asked on a connection that is gone"
        broker.asked.append((broker.clock.now(), kind, fields))
        steps = broker.steps.get(kind)
        step = steps.pop(0) if steps else "answer"
        if step == "silence":
            return

        def respond() -> None:
            if self not in broker.open:
                return
            if step == "answer":
                answer()
                return
            code = pb.ServerError.Value(step)
            error = pb.CommandError(request_id=request_id, error=code, message="scripted")
            self.client.receive(Type(type=Type.ERROR, error=error))

        now = broker.clock.now()
        due = max(now + broker.delays.get(kind, 0.0), broker.earliest.get(kind, 0.0))
        if due == now:
            respond()
        else:
            broker.clock.call_at(due, respond)

    def _get_topics_of_namespace(self, command: pb.BaseCommand) -> None:
        asked = command.getTopicsOfNamespace
        pattern = asked.topics_pattern if asked.HasField("topics_pattern") else None
        known = asked.topics_hash if asked.HasField("topics_hash") else None
        fields = {
            "pattern": pattern,
            "hash": known,
            "properties": {each.key: each.value for each in asked.properties} or None,
        }

        def answer() -> None:
            names = self.broker.matching(pattern or ".*")
            digest = topics_hash(names)
            changed = digest != known
            response = pb.CommandGetTopicsOfNamespaceResponse(
                topics=names if changed else (),
                topics_hash=digest,
                changed=changed,
                filtered=pattern is not None,
            )
            body = self.client.new_body(asked.request_id)
            body.feed(memoryview(response.SerializePartialToString()))
            self.client.receive(Listing(asked.request_id, body))

        self._request("list", asked.request_id, fields, answer)

    def _lookup(self, command: pb.BaseCommand) -> None:
        asked = command.lookupTopic
        answers = pb.CommandLookupTopicResponse
        redirected = self.broker.redirects > 0
        self.broker.redirects -= redirected
        found = pb.CommandLookupTopicResponse(
            request_id=asked.request_id,
            response=answers.Redirect if redirected else answers.Connect,
            brokerServiceUrl=OTHER_URL if redirected else URL,
            authoritative=redirected,
            proxy_through_service_url=self.broker.proxied,
        )
        told = Type(type=Type.LOOKUP_RESPONSE, lookupTopicResponse=found)
        kind = "lookup" if asked.topic.endswith("*") else "lookup of a topic"
        fields = {"topic": asked.topic} | ({"authoritative": True} if asked.authoritative else {})
        self._request(kind, asked.request_id, fields, lambda: self.client.receive(told))

    def _watch_topic_list(self, command: pb.BaseCommand) -> None:
        asked = command.watchTopicList

        def answer() -> None:
            self.watching = asked.topics_pattern
            names = self.broker.matching(asked.topics_pattern)
            opened = pb.CommandWatchTopicListSuccess(
                request_id=asked.request_id,
                watcher_id=asked.watcher_id,
                topic=names,
                topics_hash=topics_hash(names),
            )
            told = Type(type=Type.WATCH_TOPIC_LIST_SUCCESS, watchTopicListSuccess=opened)
            self.client.receive(told)

        known = asked.topics_hash if asked.HasField("topics_hash") else None
        fields = {"pattern": asked.topics_pattern, "hash": known}
        self._request("watch", asked.request_id, fields, answer)

    def _watch_topic_list_close(self, _: pb.BaseCommand) -> None:
        self.watching = ""
        self.broker.asked.append((self.broker.clock.now(), "close watch", {}))

    def _subscribe(self, command: pb.BaseCommand) -> None:
        asked = command.subscribe
        told = Type(type=Type.SUCCESS, success=pb.CommandSuccess(request_id=asked.request_id))
        fields = {"topic": asked.topic, "consumer": asked.consumer_id}
        self._request("subscribe", asked.request_id, fields, lambda: self.client.receive(told))


def on_virtual_loop(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run a coroutine on a loop with virtual time; return the result."""
    from loadgen.virtual.loop import VirtualLoop

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work())
