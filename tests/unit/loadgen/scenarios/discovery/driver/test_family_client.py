"""A client of a family: when it is back, what it does behind losses, and its rows."""

from __future__ import annotations

import pytest

from client.discovery.families import FAMILIES
from loadgen.clients.records import Outcome
from tests.support.clocks.manual_clock import ManualClock
from tests.support.discovery.scripted_wires import BASE, ScriptedWires
from tests.unit.loadgen.scenarios.discovery.clients import client_of

EVERY = ("once", *FAMILIES)
WATCHING = ("polite", "java-watch")
REFUSED = "TooManyRequests"


def wires_of(**fields):
    return ScriptedWires(ManualClock(0.0), **fields)


def begun(family, wires, **fields):
    """Return a client that was connected, as before T0, and began."""
    client = client_of(family, wires, **fields)
    client.connect()
    client.begin()
    return client


@pytest.mark.parametrize("family", EVERY)
def test_a_client_is_back_when_its_list_is_answered_and_its_watch_open(family):
    settled = []
    wires = wires_of()
    # When
    client = begun(family, wires, settled=settled)
    wires.clock.advance(200)
    # Then
    assert settled == [client]
    row = client.row(3)
    assert (row["outcome"], row["task"], row["connections"]) == ("back", 3, 1)
    assert (row["connected_seconds"], row["listed_seconds"]) == (0.0, 0.0)
    assert ("watch" in wires.kinds()) == (family in WATCHING)
    assert (row["back_seconds"] > 0) == (family == "polite")  # it asks for a watch in its turn


@pytest.mark.parametrize("family", WATCHING)
def test_a_client_whose_watch_is_silent_is_not_back(family):
    wires = wires_of(steps={"watch": ["silence"]})
    # When
    client = begun(family, wires)
    wires.clock.advance(29)
    # Then
    assert client.row(0)["outcome"] == "unfinished"


@pytest.mark.parametrize("family", WATCHING)
def test_a_client_that_is_offered_no_watch_is_back_without_and_has_no_row_for_it(family):
    wires = wires_of(watches=False)
    # When
    client = begun(family, wires)
    wires.clock.advance(200)
    # Then
    assert client.row(0)["outcome"] == "back"
    assert {record.outcome for record in client.records} == {Outcome.ANSWERED}


def test_a_client_that_gives_its_watch_up_is_not_back_and_polls_on():
    settled = []
    wires = wires_of(steps={"watch": [REFUSED] * 50})
    # When
    client = begun("java-watch", wires, settled=settled)
    wires.clock.advance(200)
    # Then
    row = client.row(0)
    assert (row["outcome"], row["reason"]) == ("refused", "TooManyRequests: scripted")
    assert settled == [client]
    assert row["listings"] > 2


def test_a_client_is_back_when_all_its_topics_are_subscribed_to():
    wires = wires_of(delays={"subscribe": 2.0})
    # When
    client = begun("cpp", wires, attach=5)
    wires.clock.advance(1.9)
    early = client.row(0)["outcome"]
    wires.clock.advance(0.2)
    # Then
    assert early == "unfinished"
    assert client.row(0)["back_seconds"] == 2.0
    topics = [fields["topic"] for _, kind, fields in wires.asked if kind == "subscribe"]
    assert topics == [BASE + "t-a", BASE + "t-b"]  # there are no more


def test_a_client_that_asks_for_the_whole_namespace_attaches_to_what_matches():
    wires = wires_of()
    # When
    begun("go", wires, attach=1, pattern=".*b")
    # Then
    assert wires.asked[-1][2]["topic"] == BASE + "t-b"


def test_a_client_that_asks_once_never_asks_again():
    settled = []
    wires = wires_of(steps={"list": [REFUSED]})
    # When
    client = begun("once", wires, settled=settled)
    wires.clock.advance(1000)
    # Then
    assert wires.kinds() == ["list"]
    assert settled == [client]
    assert client.row(0)["outcome"] == "refused"
    assert client.row(0)["reason"] == "TooManyRequests: scripted"
    assert wires.open  # as a client that was answered keeps its connection


def test_a_client_that_asks_once_may_ask_for_several_lists_in_one_go():
    wires = wires_of(delays={"list": 1.0})
    # When
    client = begun("once", wires, pipelined=3)
    assert wires.kinds() == ["list"] * 3
    wires.clock.advance(1.5)
    # Then
    assert client.row(0)["back_seconds"] == 1.0
    assert [record.intended_start_seconds for record in client.records] == [0.0] * 3


def test_a_client_that_repeats_asks_on_the_beat_whatever_becomes_of_it():
    wires = wires_of(delays={"list": 3.0}, steps={"list": ["silence", REFUSED]})
    # When
    client = begun("once", wires, repeat_seconds=2.0)
    wires.clock.advance(9.0)
    # Then
    starts = [record.intended_start_seconds for record in client.records]
    assert starts == [0.0, 2.0, 4.0, 6.0, 8.0]
    assert client.row(0)["back_seconds"] == 7.0


@pytest.mark.parametrize("family", ["java-watch", "java-poll", "cpp"])
def test_a_refused_first_listing_ends_the_official_clients(family):
    settled = []
    wires = wires_of(steps={"list": [REFUSED]})
    # When
    client = begun(family, wires, settled=settled)
    wires.clock.advance(1000)
    # Then
    assert settled == [client]
    assert client.row(0)["outcome"] == "refused"
    assert wires.kinds() == ["list"]
    assert not wires.open


def test_a_program_that_starts_anew_asks_anew_until_it_is_back():
    settled = []
    wires = wires_of(steps={"list": [REFUSED, REFUSED]})
    # When
    client = begun("java-poll", wires, restart_seconds=5.0, settled=settled)
    wires.clock.advance(11.0)
    # Then
    row = client.row(0)
    assert (row["outcome"], row["back_seconds"], row["restarts"]) == ("back", 10.0, 2)
    assert settled == [client]
    assert [record.outcome for record in client.records[:3]] == [
        Outcome.REFUSED,
        Outcome.REFUSED,
        Outcome.ANSWERED,
    ]


@pytest.mark.parametrize(("family", "ended"), [("cpp", 3.0), ("java-poll", 4.5)])
def test_a_silent_listing_times_out_and_java_notices_late(family, ended):
    wires = wires_of(steps={"list": ["silence"]})
    client = client_of(family, wires, operation_timeout_seconds=3.0)
    client.connect()
    wires.clock.advance(1.5)  # its connection looks at the age of requests each 3 s
    # When
    client.begin()
    wires.clock.advance(9)
    # Then
    record = client.records[0]
    assert (record.outcome, record.finished_seconds) == (Outcome.TIMEOUT, 1.5 + ended)
    assert client.row(0)["outcome"] == "lost"


def test_a_tunnel_is_a_connection_of_its_own():
    wires = wires_of(proxied=True)
    # When
    client = begun("java-watch", wires, attach=2)
    # Then
    assert [broker.through_proxy for broker in wires.made if broker is not None] == [True]
    assert client.row(0)["connections"] == 2
    assert client.row(0)["outcome"] == "back"


def test_a_lost_subscription_is_made_again_with_longer_delays_each_time():
    wires = wires_of()
    client = begun("cpp", wires, attach=1)
    wires.asked.clear()
    wires.down = True
    # When
    wires.drop()
    wires.clock.advance(0.5)  # in vain behind 0.1 s and behind 0.2 s more
    wires.down = False
    wires.clock.advance(0.5)
    # Then
    assert [kind for kind in wires.kinds() if kind == "subscribe"] == ["subscribe"]
    assert 0.3 <= wires.asked[-1][0] <= 0.7 + 0.1
    assert client.row(0)["reconnects"] == 1
    refused = [record for record in client.records if record.outcome is Outcome.UNREACHABLE]
    assert len(refused) == 2


def test_a_refused_first_subscription_is_tried_again_and_a_final_one_ends_the_client():
    passing = wires_of(steps={"subscribe": ["ServiceNotReady"]})
    final = wires_of(steps={"subscribe": ["AuthorizationError"]})
    # When
    clients = [begun("cpp", wires, attach=1) for wires in (passing, final)]
    for wires in (passing, final):
        wires.clock.advance(1)
    # Then
    assert [client.row(0)["outcome"] for client in clients] == ["back", "refused"]


def test_a_consumer_that_the_broker_closes_subscribes_again():
    wires = wires_of()
    begun("cpp", wires, attach=1)
    wires.asked.clear()
    # When
    wires.open[0].events.consumer_closed(0)
    wires.clock.advance(0.2)
    # Then
    assert wires.kinds() == ["lookup of a topic", "subscribe"]


def test_a_client_drops_its_connections_when_the_plan_says():
    wires = wires_of()
    client = begun("java-watch", wires, disconnects=(5.0, 9.0))
    wires.asked.clear()
    # When
    wires.clock.advance(10)
    # Then
    watches = [at for at, kind, _ in wires.asked if kind == "watch"]
    assert watches == pytest.approx([5.1, 9.1], abs=0.02)
    assert client.row(0)["reconnects"] == 2


def test_a_client_in_its_turn_starts_when_it_is_told():
    wires = wires_of()
    client = client_of("cpp", wires, start_seconds=None)
    wires.clock.advance(7)
    # When
    client.begin()
    # Then
    assert client.row(0)["intended_start_seconds"] == 7.0
    assert client.records[0].intended_start_seconds == 7.0


def test_a_stopped_client_asks_for_nothing_and_ends_what_is_under_way():
    wires = wires_of(steps={"list": ["silence"]})
    client = begun("polite", wires)
    # When
    client.stop()
    wires.clock.advance(10)
    client.end()
    wires.clock.advance(1000)
    # Then
    assert wires.kinds() == ["list"]
    assert [record.outcome for record in client.records] == [Outcome.TIMEOUT]
    assert not wires.open


def test_an_interrupted_client_leaves_requests_without_an_end():
    wires = wires_of(steps={"list": ["silence"]})
    client = begun("cpp", wires)
    # When
    client.close()
    # Then
    assert client.records[0].outcome is None
