"""Calls of a listing plug-in: any misbehaviour costs one request a clear error."""

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from broker.plugins.calls import MAX_OVERDUE_CALLS, ResourceCalls, ResourcesError
from broker.topic_lists.sequence import TopicListing, TopicSequence
from proto.names import NamespaceName
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started
from tests.unit.broker.plugins.plug_ins import AtOnce, Scripted, Stubborn

NAME = "my.module:Plugin"
NAMESPACE = NamespaceName.parse("tenant/ns")
PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT
SOME = {"team": "x"}
TOPIC = "persistent://tenant/ns/a"


class Setup:
    """A plug-in and the calls to it, with a time limit of 30 s."""

    def __init__(self, plug_in: Scripted | None = None) -> None:
        self.clock = ManualClock()
        self.plug_in = plug_in or Scripted()
        self.calls = ResourceCalls(self.plug_in, NAME, 30.0, self.clock)

    async def listed(self) -> TopicListing:
        return await self.calls.list_topics(NAMESPACE, PERSISTENT, SOME)

    async def refusal(self) -> str:
        with pytest.raises(ResourcesError) as caught:
            await self.listed()
        return str(caught.value)


async def test_a_plug_in_is_called_with_namespace_mode_and_properties() -> None:
    setup = Setup()
    setup.plug_in.answer = [TOPIC]
    listing = await setup.listed()
    assert setup.plug_in.asked == [("tenant/ns", PERSISTENT, SOME)]
    assert list(listing.names()) == [TOPIC]
    assert setup.calls.failures_total == 0


async def test_a_listing_from_a_plug_in_is_returned_unchanged() -> None:
    setup = Setup()
    setup.plug_in.answer = TopicListing(TopicSequence.from_names([TOPIC.encode()]))
    assert await setup.listed() is setup.plug_in.answer


async def test_a_plug_in_cannot_change_the_properties_of_its_caller() -> None:
    class Greedy(Scripted):
        async def list_topics_of_namespace(self, namespace, mode, properties):
            properties.clear()
            return []

    given = dict(SOME)
    await Setup(Greedy()).calls.list_topics(NAMESPACE, PERSISTENT, given)
    assert given == SOME


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (ValueError("no index"), "failed: ValueError: no index"),
        (SystemExit(3), "failed: SystemExit: 3"),
        (asyncio.CancelledError(), "was cancelled by itself"),
        (MemoryError(), "failed: MemoryError: "),
        (None, "answered NoneType where a list of names was expected"),
        (["persistent://tenant/other/a"], "answered 'persistent://tenant/other/a', which is no"),
    ],
    ids=repr,
)
async def test_a_failing_plug_in_is_refused_by_name_and_the_next_call_succeeds(
    answer: object, told: str
) -> None:
    setup = Setup()
    setup.plug_in.answer = answer
    sentence = await setup.refusal()
    assert sentence.startswith(f"pulsarResourcesExtendedClassName={NAME} {told}")
    assert (setup.calls.failures_total, setup.calls.under_way) == (1, 0)
    # And the next request is served
    setup.plug_in.answer = [TOPIC]
    assert len(await setup.listed()) == 1


async def test_a_synchronous_plug_in_is_refused_with_a_hint_to_async_def() -> None:
    assert "answered with list at once; write it as async def" in await Setup(AtOnce()).refusal()


async def test_a_list_that_raises_when_read_is_a_failure_of_the_plug_in() -> None:
    class Trap(list):
        def __len__(self) -> int:
            raise KeyError("trap")

    setup = Setup()
    setup.plug_in.answer = Trap()
    assert "answered what cannot be read: KeyError: 'trap'" in await setup.refusal()


async def test_a_hanging_plug_in_call_is_cancelled_after_its_timeout() -> None:
    setup = Setup()
    setup.plug_in.go_on.clear()
    asking = await started(setup.listed())
    setup.clock.advance(29.9)
    await settle()
    still = asking.done()
    setup.clock.advance(0.1)
    with pytest.raises(ResourcesError, match=r"within 30 s \(floodgateResourcesTimeoutMs\)"):
        await asking
    assert not still
    await settle()
    assert (setup.plug_in.cancelled, setup.calls.overdue, setup.calls.under_way) == (1, 0, 0)


async def test_a_call_that_resists_cancellation_is_refused_and_counted_as_overdue() -> None:
    setup = Setup(Stubborn())
    setup.plug_in.go_on.clear()
    asking = await started(setup.listed())
    setup.clock.advance(30.0)
    await settle()
    assert "did not answer" in str(asking.exception())
    assert (setup.calls.under_way, setup.calls.overdue) == (0, 1)
    setup.plug_in.go_on.set()
    await settle()
    assert setup.calls.overdue == 0


async def test_a_cancelled_caller_cancels_its_plug_in_call() -> None:
    setup = Setup()
    setup.plug_in.go_on.clear()
    asking = await started(setup.listed())
    asking.cancel()
    await settle()
    assert asking.cancelled()
    assert (setup.plug_in.cancelled, setup.calls.overdue, setup.calls.under_way) == (1, 0, 0)
    assert setup.calls.failures_total == 0


async def test_overdue_plug_in_calls_are_bounded() -> None:
    setup = Setup(Stubborn())
    setup.plug_in.go_on.clear()
    stuck = [await started(setup.listed()) for _ in range(MAX_OVERDUE_CALLS)]
    setup.clock.advance(30.0)
    await asyncio.gather(*stuck, return_exceptions=True)
    told = await setup.refusal()
    assert f"is stuck: {MAX_OVERDUE_CALLS} calls still run after their time" in told
    assert len(setup.plug_in.asked) == MAX_OVERDUE_CALLS
    # After the calls end, the plug-in is called again
    setup.plug_in.go_on.set()
    await settle()
    assert len(await setup.listed()) == 0


async def test_overdue_calls_of_cancelled_callers_do_not_refuse_a_new_call() -> None:
    setup = Setup()
    setup.plug_in.go_on.clear()
    leaving = [await started(setup.listed()) for _ in range(MAX_OVERDUE_CALLS + 1)]
    for one in leaving:
        one.cancel()
    # The clients have left, and their calls are still running
    await asyncio.sleep(0)
    setup.plug_in.go_on.set()
    overdue = setup.calls.overdue
    assert len(await setup.listed()) == 0
    assert overdue == MAX_OVERDUE_CALLS + 1


async def test_the_first_failure_of_a_kind_is_logged_with_its_stack(caplog) -> None:
    setup = Setup()
    for error in (ValueError("a"), ValueError("b"), KeyError("c")):
        setup.plug_in.answer = error
        await setup.refusal()
    said = [record.message.split(" ", 1)[1] for record in caplog.records]
    assert said == ["failed: ValueError: a", "failed: KeyError: 'c'"]
    assert all(record.exc_info for record in caplog.records)
