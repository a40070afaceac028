"""A discovering client: recovery time, and behaviour after losses and refusals."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from client.discovery.families import FAMILIES
from limiter.clock import clock_sleep
from loadgen.engine.client import LoadClient
from loadgen.engine.rows import Outcome
from tests.support.discovery.load_clients import broker_of, client_of, running
from tests.support.discovery.scripted_broker import BASE, ScriptedBroker, on_virtual_loop

WATCHING = ("polite", "java-watch")
REFUSED = "TooManyRequests"
Play = Callable[[ScriptedBroker, LoadClient], Awaitable[None]]


def played(
    library: str, seconds: float, play: Play | None = None, script: Any = None, **group: Any
) -> tuple[ScriptedBroker, LoadClient]:
    """Run a client for ``seconds``, then an action; return the client with the broker."""

    async def course() -> tuple[ScriptedBroker, LoadClient]:
        broker = broker_of(**(script or {}))
        client = client_of(broker, do="discover", library=library, **group)
        async with running(client):
            await clock_sleep(broker.clock, seconds)
            if play is not None:
                await play(broker, client)
        return broker, client

    return on_virtual_loop(course)


def events(client: LoadClient, *what: str) -> list[tuple[str, float | None]]:
    return [(each.what, each.value) for each in client.context.rows.events if each.what in what]


def ends(client: LoadClient) -> list[str]:
    return [each.what for each in client.context.rows.events if each.what in ENDS]


ENDS = ("back", "refused", "lost")


@pytest.mark.parametrize("library", FAMILIES)
def test_a_client_is_back_when_its_listing_is_answered_and_its_watch_is_open(library: str) -> None:
    broker, client = played(library, 200)
    assert ends(client) == ["back"]
    assert ("watch" in broker.kinds()) == (library in WATCHING)


@pytest.mark.parametrize("library", WATCHING)
def test_a_client_whose_watch_is_not_answered_is_not_back(library: str) -> None:
    _, client = played(library, 29, script={"steps": {"watch": ["silence"]}})
    assert ends(client) == []


@pytest.mark.parametrize("library", WATCHING)
def test_a_client_of_a_broker_without_watches_is_back_and_has_no_row_for_a_watch(library) -> None:
    _, client = played(library, 200, script={"watches": False})
    assert ends(client) == ["back"]
    assert {row.outcome for row in client.context.rows.requests} == {Outcome.ANSWERED}


def test_a_client_whose_watch_is_always_refused_is_not_back_and_keeps_polling() -> None:
    broker, client = played("java-watch", 200, script={"steps": {"watch": [REFUSED] * 50}})
    assert ends(client) == ["refused"]
    assert broker.kinds().count("list") > 2


def test_a_client_is_back_when_all_of_its_topics_are_subscribed() -> None:
    broker, client = played("cpp", 3, script={"delays": {"subscribe": 2.0}}, attach=5)
    ((_, took),) = events(client, "back")
    assert took == pytest.approx(2.0)
    topics = [fields["topic"] for _, kind, fields in broker.asked if kind == "subscribe"]
    assert topics == [BASE + "t-a", BASE + "t-b"]  # The remaining topics.


def test_a_client_that_lists_the_whole_namespace_subscribes_to_matching_topics() -> None:
    broker, _ = played("go", 1, attach=1, pattern=".*b")
    assert broker.asked[-1][2]["topic"] == BASE + "t-b"


@pytest.mark.parametrize("library", ["java-watch", "java-poll", "cpp"])
def test_a_refused_first_listing_ends_the_official_clients(library: str) -> None:
    broker, client = played(library, 1000, script={"steps": {"list": [REFUSED]}})
    assert ends(client) == ["refused"]
    assert broker.kinds() == ["list"]


def test_a_restarting_client_repeats_a_refused_listing_until_answered() -> None:
    script = {"steps": {"list": [REFUSED, REFUSED]}}
    _, client = played("java-poll", 11, script=script, restart=5)
    ((_, took),) = events(client, "back")
    assert took == pytest.approx(10.0)
    assert len(events(client, "restarted")) == 2
    outcomes = [row.outcome for row in client.context.rows.requests[:3]]
    assert outcomes == [Outcome.REFUSED, Outcome.REFUSED, Outcome.ANSWERED]


@pytest.mark.parametrize(("library", "ended"), [("cpp", 3.0), ("java-poll", 4.5)])
def test_an_unanswered_listing_times_out_and_java_notices_the_timeout_late(
    library: str, ended: float
) -> None:
    async def course() -> LoadClient:
        broker = broker_of(steps={"list": ["silence"]})
        client = client_of(broker, do="discover", library=library, timeout=3)
        await client.service.ready()
        await clock_sleep(broker.clock, 1.5)  # The connection examines ages every 3 s.
        async with running(client):
            await clock_sleep(broker.clock, 9)
        return client

    client = on_virtual_loop(course)
    row = client.context.rows.requests[0]
    assert row.outcome is Outcome.TIMEOUT
    assert row.done == pytest.approx(1.5 + ended)
    assert ends(client) == ["lost"]


def test_behind_a_proxy_a_tunnel_is_a_second_connection_to_the_service_url() -> None:
    broker, client = played("java-watch", 2, script={"proxied": True}, attach=2)
    assert broker.made == [None, None]  # Both to the service URL: the proxy forwards.
    assert ends(client) == ["back"]


def test_a_lost_subscription_is_retried_with_growing_delays() -> None:
    async def play(broker: ScriptedBroker, _: LoadClient) -> None:
        broker.asked.clear()
        broker.down = True
        broker.drop()
        await clock_sleep(broker.clock, 0.5)  # In vain behind 0.1 s and behind 0.2 s more.
        broker.down = False
        await clock_sleep(broker.clock, 0.5)

    broker, client = played("cpp", 1, play, attach=1)
    assert broker.kinds().count("subscribe") == 1
    unreachable = [
        row for row in client.context.rows.requests if row.outcome is Outcome.UNREACHABLE
    ]
    assert len(unreachable) == 2


@pytest.mark.parametrize(
    ("error", "end"), [("ServiceNotReady", "back"), ("AuthorizationError", "refused")]
)
def test_a_refused_first_subscription_is_retried_unless_the_error_is_final(error, end) -> None:
    _, client = played("cpp", 1, script={"steps": {"subscribe": [error]}}, attach=1)
    assert ends(client) == [end]


def test_a_consumer_that_the_broker_closes_subscribes_again() -> None:
    async def play(broker: ScriptedBroker, _: LoadClient) -> None:
        broker.asked.clear()
        close = pb.CommandCloseConsumer(consumer_id=0, request_id=1)
        broker.open[0].client.receive(
            pb.BaseCommand(type=pb.BaseCommand.CLOSE_CONSUMER, close_consumer=close)
        )
        await clock_sleep(broker.clock, 0.2)

    broker, _ = played("cpp", 1, play, attach=1)
    assert broker.kinds() == ["lookup of a topic", "subscribe"]


def test_a_client_loses_its_connections_at_the_planned_times() -> None:
    async def course() -> tuple[ScriptedBroker, LoadClient]:
        broker = broker_of()
        client = client_of(broker, do="discover", library="java-watch", drops=(5.0, 9.0))
        async with running(client):
            await clock_sleep(broker.clock, 10)
        return broker, client

    broker, client = on_virtual_loop(course)
    watches = [at for at, kind, _ in broker.asked if kind == "watch"][1:]
    assert watches == pytest.approx([5.1, 9.1], abs=0.02)
    assert len(events(client, "connection-lost")) == 2


def test_a_client_that_ends_closes_its_connections_and_times_out_open_requests() -> None:
    broker, client = played("polite", 1, script={"steps": {"list": ["silence"]}})
    assert [row.outcome for row in client.context.rows.requests] == [Outcome.TIMEOUT]
    assert not broker.open
