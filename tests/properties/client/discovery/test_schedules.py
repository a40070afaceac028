"""Every family always finds the topics in the end, with one request at a time."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from client.discovery.families import FAMILIES
from client.discovery.polite import MOST_FIRST_SECONDS, MOST_PERIODS, SHORTEST_SECONDS
from client.discovery.schedule import Unanswered
from tests.support.discovery.world import OPTIONS, World
from tests.support.examples import many

FAILURES = (
    pb.TooManyRequests,
    pb.MetadataError,
    pb.ServiceNotReady,
    pb.NotAllowedError,
    Unanswered.TIMED_OUT,
)
EVENTS = st.one_of(
    st.tuples(st.just("wait"), st.floats(0.01, 90)),
    st.tuples(st.just("answer"), st.none()),
    st.tuples(st.just("refuse"), st.sampled_from(FAILURES)),
    st.tuples(st.just("lose"), st.none()),
    st.tuples(st.just("connect"), st.booleans()),
    st.tuples(st.just("change"), st.integers(0, 5)),
    st.tuples(st.just("change unseen"), st.integers(0, 5)),
)


def happen(world, event, what):
    """Apply an event, if possible."""
    if event == "wait":
        world.clock.advance(what)
    elif event == "answer" and world.pending:
        world.answer()
    elif event == "refuse" and world.pending:
        world.refuse(what)
    elif event == "lose" and world.connected:
        world.lose()
    elif event == "connect" and not world.connected:
        world.connect(watches=what, reconciles=what)
    elif event.startswith("change"):
        world.change(f"t-{what}", told=event == "change")


@pytest.mark.parametrize("family", FAMILIES)
@given(events=st.lists(EVENTS, max_size=60), seed=st.integers(0, 1000))
@settings(max_examples=60, deadline=None)
def test_every_client_family_finds_the_topics_after_any_failures(family, events, seed):
    # Given a consumer whose first listing was answered
    world = World(family, seed=seed)
    world.start()
    world.answer()
    # When anything happens, and then nothing goes wrong any more
    for event, what in events:
        happen(world, event, what)
    world.calm(2 * (MOST_PERIODS + 1) * OPTIONS.period_seconds)
    assert world.names == world.topics
    assert world.gave_up is None


@given(events=st.lists(EVENTS, max_size=80), seed=st.integers(0, 1000))
@settings(max_examples=many(100), deadline=None)
def test_the_listings_of_a_polite_consumer_are_bounded_per_period(events, seed):
    world = World("polite", seed=seed)
    world.start()
    for event, what in events:
        happen(world, event, what)
    # Then there are two a period at most, and one for each thing that went wrong
    periods = world.clock.now() / OPTIONS.period_seconds
    wrong = ("refuse", "lose", "change", "change unseen")
    assert len(world.listings) <= 2 + 2 * periods + sum(event in wrong for event, _ in events)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=many(100), deadline=None)
def test_a_refused_polite_consumer_backs_off(seed):
    # Given a program that waits without end for its subscription
    world = World("polite", seed=seed)
    world.start()
    # When all is refused for ten minutes
    while world.clock.now() < 600:
        while world.pending:
            world.refuse()
        world.clock.advance(0.05)
    # Windows of 0.5, 1, 2, 4, 8, 10, 10 ... s, of which half is waited on average
    asked = world.listings
    assert all(later - earlier >= SHORTEST_SECONDS - 0.01 for earlier, later in pairwise(asked))
    assert len(asked) < 600 / (MOST_FIRST_SECONDS / 4)
