"""A lookup follows redirects as official clients do."""

import pytest

from limiter.clock import clock_sleep
from loadgen.engine.client import MOST_REDIRECTS, LoadClient
from loadgen.engine.rows import Outcome
from tests.support.discovery.load_clients import broker_of, client_of, running
from tests.support.discovery.scripted_broker import ScriptedBroker, on_virtual_loop


def looked_up(**script: object) -> tuple[ScriptedBroker, LoadClient]:
    async def course() -> tuple[ScriptedBroker, LoadClient]:
        broker = broker_of(**script)
        client = client_of(broker, do="lookup", every=1)
        async with running(client):
            await clock_sleep(broker.clock, 0.5)
        return broker, client

    return on_virtual_loop(course)


@pytest.mark.parametrize("redirects", [0, 1, 3])
def test_a_redirected_lookup_is_sent_to_the_named_broker_as_authoritative(redirects: int) -> None:
    broker, client = looked_up(redirects=redirects)
    said = [fields.get("authoritative", False) for _, _, fields in broker.asked]
    assert said == [False, *[True] * redirects]
    assert broker.made == [None, *["other:6650"] * bool(redirects)]
    assert {row.outcome for row in client.context.rows.requests} == {Outcome.ANSWERED}


def test_a_lookup_stops_after_the_maximum_number_of_redirects() -> None:
    broker, _ = looked_up(redirects=1_000)
    assert len(broker.asked) == 1 + MOST_REDIRECTS
