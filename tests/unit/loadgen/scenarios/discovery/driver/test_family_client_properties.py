"""Whatever the wires do, every request of a client ends once, and the client has one row."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from client.discovery.families import FAMILIES
from loadgen.clients.records import Outcome
from loadgen.clients.wires import BrokerAddress, ListAnswer
from proto.commands import NO_REQUEST
from tests.support.clocks.manual_clock import ManualClock
from tests.unit.loadgen.scenarios.discovery.clients import client_of

EVERY = ("once", *FAMILIES)
BROKERS = (BrokerAddress("pulsar://a:1", False), BrokerAddress("pulsar://b:1", True))


class AnyWires:
    """Wires that do nothing until they are told, and then anything."""

    def __init__(self):
        self.clock = ManualClock(0.0)
        self.wanted = []
        self.wires = []

    def begin(self):
        pass

    def serves(self, broker):
        return broker is BROKERS[0]

    def connect(self, events, broker=None):
        self.wanted.append(events)


class AnyWire:
    """A connection that remembers numbers, and asserts that it is not used when it is gone."""

    def __init__(self, events):
        self.events = events
        self.numbers = [NO_REQUEST, 77777]
        self.gone = False

    def _note(self, number, *_):
        assert not self.gone
        self.numbers.append(number)

    list_topics = look_up = open_watch = subscribe = _note

    def close_watch(self, watcher_id):
        assert not self.gone

    def close(self):
        self.gone = True


VERBS = (
    *("connect", "unreachable", "lose", "list", "lookup", "watch", "subscribe", "refuse"),
    *("refuse", "closed", "update", "wait", "wait", "first-byte", "late"),
)
STEPS = st.lists(
    st.tuples(st.sampled_from(VERBS), st.integers(0, 5), st.integers(0, 5)), max_size=60
)


def happen(wires, verb, one, other):
    """Let something happen on some connection, to some request."""
    if verb == "wait":
        wires.clock.advance((0.05, 0.5, 5.0, 31.0, 70.0, 400.0)[one])
    elif verb in ("connect", "unreachable"):
        if wires.wanted:
            events = wires.wanted.pop(one % len(wires.wanted))
            if verb == "unreachable":
                events.unreachable("no")
            else:
                wire = AnyWire(events)
                wires.wires.append(wire)
                events.connected(wire, watches=other != 1, reconciles=other > 3)
    elif wires.wires:
        wire = wires.wires[one % len(wires.wires)]
        if wire.gone and verb != "late":
            return
        number = wire.numbers[-1 - other % len(wire.numbers)]
        tell(wire, verb, number, other)


def tell(wire, verb, number, other):
    events = wire.events
    answer = ListAnswer(10, f"{other}", changed=other > 0, names=("t-a", "t-b"))
    telling = {
        "lose": lambda: events.disconnected("gone"),
        "list": lambda: events.listed(number, answer),
        "late": lambda: events.listed(number, answer),
        "lookup": lambda: events.looked_up(number, BROKERS[other % 2]),
        "watch": lambda: events.watch_opened(number, "h", 1),
        "subscribe": lambda: events.subscribed(number),
        "refuse": lambda: events.refused(
            number, (pb.TooManyRequests, pb.AuthorizationError)[other % 2], "no"
        ),
        "closed": lambda: events.consumer_closed(other),
        "update": lambda: events.watch_updated(1, "h", 1),
        "first-byte": lambda: events.first_byte(number),
    }
    if verb == "lose":
        wire.gone = True
    telling[verb]()


@pytest.mark.parametrize("family", EVERY)
@given(steps=STEPS, restart=st.sampled_from((0.0, 3.0)), drops=st.sampled_from(((), (1.0, 50.0))))
@settings(max_examples=60, deadline=None)
def test_every_request_ends_once(family, steps, restart, drops):
    wires, settled = AnyWires(), []
    client = client_of(
        family, wires, settled=settled, disconnects=drops, attach=2, restart_seconds=restart
    )
    # When
    client.connect()
    client.begin()
    for step in steps:
        happen(wires, *step)
    client.stop()
    wires.clock.advance(1000)
    client.end()
    late = [AnyWire(events) for events in wires.wanted]
    for wire in late:
        wire.events.connected(wire, watches=True, reconciles=True)
    # Then
    ended = Counter(record.outcome for record in client.records)
    counters = client.context.counters
    assert ended == Counter({each: getattr(counters, each) for each in Outcome})
    assert all(
        record.finished_seconds >= record.intended_start_seconds for record in client.records
    )
    assert counters.started == sum(record.started for record in client.records)
    assert len(settled) <= 1
    row = client.row(0)
    assert (row["outcome"] == "back") == (row["back_seconds"] is not None)
    assert (row["outcome"] == "unfinished") <= (not settled)
    assert all(wire.gone for wire in wires.wires + late)
