"""Wires to a broker of plain values: it answers, refuses or is silent as a test says."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import proto.PulsarApi_pb2 as pb
from loadgen.clients.wires import BrokerAddress, ListAnswer
from proto.topic_hash import topics_hash

if TYPE_CHECKING:
    from loadgen.clients.wires import ListQuestion, WireEvents
    from tests.support.clocks.manual_clock import ManualClock

BASE = "persistent://public/default/"
URL = "pulsar://broker:6650"


@dataclass
class ScriptedWires:
    """A broker, behind a proxy or not, and the connections of one client to it.

    Attributes:
        topics: Full names, all in one namespace.
        steps: Of each kind of request what becomes of the first, the second and so on: ``answer``,
            ``silence`` or an error's name; beyond them ``answer``.
        delays: Seconds that answers to a kind of request take; at once without.
        earliest: The moment before which no answer to a kind of request comes.
        asked: When a request came, its kind, and its fields.
        open: The connections that stand.
        made: Brokers that connections were made to; None is the service URL.
    """

    clock: ManualClock
    topics: set[str] = field(default_factory=lambda: {BASE + "t-a", BASE + "t-b"})
    steps: dict[str, list[str]] = field(default_factory=dict)
    delays: dict[str, float] = field(default_factory=dict)
    earliest: dict[str, float] = field(default_factory=dict)
    watches: bool = True
    reconciles: bool = False
    proxied: bool = False
    down: bool = False
    asked: list[tuple[float, str, dict[str, Any]]] = field(default_factory=list)
    open: list[ScriptedWire] = field(default_factory=list)
    made: list[BrokerAddress | None] = field(default_factory=list)
    begun: bool = False

    def begin(self) -> None:
        self.begun = True

    def serves(self, broker: BrokerAddress) -> bool:
        return not broker.through_proxy

    def connect(self, events: WireEvents, broker: BrokerAddress | None = None) -> None:
        if self.down:
            events.unreachable("Connection refused")
            return
        wire = ScriptedWire(self, events)
        self.open.append(wire)
        self.made.append(broker)
        events.connected(wire, watches=self.watches, reconciles=self.reconciles)

    def drop(self) -> None:
        """Lose all connections."""
        lost, self.open = self.open, []
        for wire in lost:
            wire.events.disconnected("connection lost")

    def kinds(self) -> list[str]:
        """The kinds of what was asked, in order."""
        return [kind for _, kind, _ in self.asked]

    def change(self, name: str, *, told: bool = True) -> None:
        """Create a topic, or delete it if it is there."""
        self.topics ^= {BASE + name}
        for wire in self.open if told else ():
            if wire.watching:
                matching = self.matching(wire.watching)
                wire.events.watch_updated(1, topics_hash(matching), 1)

    def matching(self, pattern: str) -> list[str]:
        return sorted(name for name in self.topics if re.fullmatch(pattern, name))


class ScriptedWire:
    """One connection."""

    def __init__(self, wires: ScriptedWires, events: WireEvents) -> None:
        self.wires = wires
        self.events = events
        self.watching = ""

    def _request(self, kind: str, request_id: int, fields: dict[str, Any], answer: Any) -> None:
        wires = self.wires
        assert self in wires.open, "asked on a connection that is gone"
        wires.asked.append((wires.clock.now(), kind, fields))
        steps = wires.steps.get(kind)
        step = steps.pop(0) if steps else "answer"
        if step == "silence":
            return

        def respond() -> None:
            if self not in wires.open:
                return
            if step == "answer":
                answer()
            else:
                self.events.refused(request_id, pb.ServerError.Value(step), f"{step}: scripted")

        now = wires.clock.now()
        due = max(now + wires.delays.get(kind, 0.0), wires.earliest.get(kind, 0.0))
        if due == now:
            respond()
        else:
            wires.clock.call_at(due, respond)

    def list_topics(self, request_id: int, question: ListQuestion) -> None:
        fields = {
            "pattern": question.pattern,
            "hash": question.topics_hash,
            "properties": dict(question.properties or {}) or None,
        }

        def answer() -> None:
            names = self.wires.matching(question.pattern or ".*")
            digest = topics_hash(names)
            told = [
                name
                for name in names
                if question.names_matching is None or question.names_matching.matches(name)
            ]
            changed = digest != question.topics_hash
            self.events.first_byte(request_id)
            self.events.listed(
                request_id,
                ListAnswer(100, digest, changed, told[: question.names_wanted] if changed else ()),
            )

        self._request("list", request_id, fields, answer)

    def look_up(self, request_id: int, topic: str) -> None:
        address = BrokerAddress(URL, self.wires.proxied)

        def answer() -> None:
            self.events.looked_up(request_id, address)

        kind = "lookup" if topic.endswith("*") else "lookup of a topic"
        self._request(kind, request_id, {"topic": topic}, answer)

    def open_watch(
        self,
        request_id: int,
        watcher_id: int,
        namespace: str,
        pattern: str,
        topics_hash: str | None,
    ) -> None:
        def answer() -> None:
            self.watching = pattern
            names = self.wires.matching(pattern)
            self.events.watch_opened(request_id, _hash(names), len(names))

        fields = {"pattern": pattern, "hash": topics_hash}
        self._request("watch", request_id, fields, answer)

    def close_watch(self, watcher_id: int) -> None:
        self.watching = ""
        self.wires.asked.append((self.wires.clock.now(), "close watch", {}))

    def subscribe(self, request_id: int, consumer_id: int, topic: str, subscription: str) -> None:
        fields = {"topic": topic, "consumer": consumer_id}
        self._request("subscribe", request_id, fields, lambda: self.events.subscribed(request_id))

    def close(self) -> None:
        if self in self.wires.open:
            self.wires.open.remove(self)


_hash = topics_hash
