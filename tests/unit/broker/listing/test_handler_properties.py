"""Listings with properties: reservation and refusals."""

import pytest

import proto.PulsarApi_pb2 as pb
from broker.configuration.plugin_keys import PropertyBounds
from broker.listing.estimates import ListingEstimates
from broker.listing.lister import TopicLister
from broker.plugins.calls import ResourceCalls
from limiter.memory.dual_limiter import LimitType
from limiter.memory.size_estimate import SizeEstimate
from server.connection.request_errors import RequestError
from tests.support.clocks.settle import settle, started
from tests.support.processes.cluster import held
from tests.unit.broker.listing.test_handler import ESTIMATE, NAMES, NAMESPACE, Setup
from tests.unit.broker.plugins.plug_ins import Scripted

HEAP = LimitType.HEAP_MEMORY
FIRST = 10_240


def team(name: str) -> list[pb.KeyValue]:
    return [pb.KeyValue(key="team", value=name)]


class PropertySetup(Setup):
    """A handler whose plug-in returns scripted results."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.plug_in = Scripted()
        calls = ResourceCalls(self.plug_in, "m:C", 30.0, self.clock)
        self.lister = self.handler._lister = TopicLister(
            self.store, calls, PropertyBounds(max_properties=100, max_bytes=0)
        )
        policy = SizeEstimate.LAST if options.get("as_shipped") else SizeEstimate.EXACT
        self.handler._estimates = ListingEstimates(
            policy, self.lister, anyone_resets=bool(options.get("as_shipped"))
        )


async def test_a_plug_in_listing_reserves_its_remembered_size_not_the_whole_namespace() -> None:
    setup = await PropertySetup().fill()
    setup.plug_in.answer = NAMES[:10]
    reserved = []
    for _ in range(2):
        setup.plug_in.go_on.clear()
        serving = await started(setup.serve(properties=team("x")))
        reserved.append(setup.limiter.acquired_permits(HEAP))
        setup.plug_in.go_on.set()
        await serving
    assert reserved == [FIRST, sum(len(name) + 32 for name in NAMES[:10])]
    assert ESTIMATE not in reserved
    assert held(setup.limiter) == {}


async def test_in_profile_pulsar_listings_with_and_without_properties_share_an_estimate() -> None:
    setup = await PropertySetup(as_shipped=True, estimate=SizeEstimate.LAST).fill()
    setup.plug_in.answer = NAMES[:10]
    await setup.serve()
    setup.plug_in.go_on.clear()
    serving = await started(setup.serve(properties=team("x")))
    assert setup.limiter.acquired_permits(HEAP) == ESTIMATE
    setup.plug_in.go_on.set()
    await serving


async def test_listings_with_different_properties_share_no_charge() -> None:
    setup = await PropertySetup().fill()
    setup.plug_in.go_on.clear()
    serving = [
        await started(setup.serve(number, properties=team(name)))
        for number, name in enumerate(("x", "x", "y"))
    ]
    assert setup.limiter.acquired_permits(HEAP) == 2 * FIRST
    setup.plug_in.go_on.set()
    await settle()
    assert all(one.done() for one in serving)
    assert held(setup.limiter) == {}


async def test_the_default_plug_in_ignores_the_properties_of_a_request() -> None:
    setup = await Setup().fill()
    assert setup.handler.properties_of(pb.CommandGetTopicsOfNamespace(properties=team("x"))) == {}


async def test_a_plug_in_failure_is_a_metadata_error_that_names_the_class() -> None:
    setup = await PropertySetup().fill()
    setup.plug_in.answer = ValueError("no index")
    with pytest.raises(RequestError) as caught:
        await setup.serve(properties=team("x"))
    assert caught.value.server_error == pb.MetadataError
    assert caught.value.message == (
        "pulsarResourcesExtendedClassName=m:C failed: ValueError: no index"
    )
    assert held(setup.limiter) == {}


async def test_too_many_properties_are_refused_without_a_call_of_the_plug_in() -> None:
    setup = await PropertySetup().fill()
    with pytest.raises(RequestError) as caught:
        await setup.serve(properties=team("x") * 101)
    assert caught.value.server_error == pb.NotAllowedError
    assert "101 properties" in caught.value.message
    assert setup.plug_in.asked == []


async def test_a_plug_in_listing_above_the_limit_is_refused_and_its_size_not_remembered() -> None:
    setup = await PropertySetup(heap=FIRST + 1).fill()
    setup.plug_in.answer = [f"persistent://{NAMESPACE}/{'x' * 1_000}-{n}" for n in range(15)]
    with pytest.raises(RequestError) as caught:
        await setup.serve(properties=team("x"))
    assert caught.value.server_error == pb.TooManyRequests
    setup.plug_in.answer = NAMES[:1]
    await setup.serve(properties=team("x"))
    assert list(setup.answer().topics) == NAMES[:1]
