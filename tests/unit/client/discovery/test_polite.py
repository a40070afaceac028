"""The polite schedule: spread in time, patient after refusals."""

from dataclasses import replace

import pytest

import proto.PulsarApi_pb2 as pb
from client.discovery.schedule import ListTopics, OpenWatch, Unanswered
from tests.support.discovery.world import OPTIONS, World

HURRIED = replace(OPTIONS, operation_timeout_seconds=30.0)
PLAIN = replace(OPTIONS, properties={"team": "red"})  # cannot be watched


def opened(options=PLAIN, seed=1):
    """Return a consumer whose first listing was answered."""
    world = World("polite", options, seed)
    world.start()
    world.answer()
    return world


def watched(seed=1):
    """Return a consumer whose watch was opened."""
    world = opened(OPTIONS, seed)
    while not world.watching:
        world.calm(1)
    return world


def refusing(failure):
    """Return a consumer whose watch was refused."""
    world = opened(OPTIONS)
    while not (world.pending and isinstance(world.pending[0], OpenWatch)):
        if world.pending:
            world.answer()
        world.clock.advance(1)
    world.refuse(failure)
    return world


def test_the_first_listing_is_requested_immediately_with_the_pattern():
    world = World("polite")
    world.start()
    assert world.asked == [(0.0, ListTopics(OPTIONS.pattern, None, {}))]


def test_a_refused_first_listing_is_retried():
    world = World("polite", HURRIED)
    world.start()
    world.refuse(pb.TooManyRequests)
    world.clock.advance(0.5)
    assert len(world.listings) == 2
    assert world.gave_up is None


def test_a_forbidden_first_listing_fails_the_subscription():
    world = World("polite")
    world.start()
    world.refuse(pb.AuthorizationError)
    assert world.gave_up == pb.AuthorizationError


def test_the_subscription_fails_within_the_operation_timeout_while_unreachable():
    world = World("polite", HURRIED)
    world.start()
    while world.gave_up is None:
        while world.pending:
            world.refuse(Unanswered.UNREACHABLE)
        world.clock.advance(0.1)
    assert 20 <= world.clock.now() <= 30


def test_polls_send_the_hash_of_the_last_listing():
    world = opened()
    world.clock.advance(1.5 * OPTIONS.period_seconds)
    assert world.pending == [
        ListTopics(OPTIONS.pattern, world.schedule.topics_hash, {"team": "red"})
    ]


def test_polls_of_consumers_started_simultaneously_are_spread_over_the_period():
    worlds = [opened(seed=seed) for seed in range(100)]
    for world in worlds:
        world.clock.advance(1.5 * OPTIONS.period_seconds)
    # Then some are due at any time of the period
    times = sorted(world.listings[1] for world in worlds)
    assert times[0] < 0.6 * OPTIONS.period_seconds
    assert times[-1] > 1.4 * OPTIONS.period_seconds


def test_a_reconnection_is_not_followed_by_an_immediate_listing():
    worlds = [opened(seed=seed) for seed in range(100)]
    for world in worlds:
        world.lose()
        world.connect()
        world.clock.advance(0.02 * OPTIONS.period_seconds)
    assert sum(len(world.listings) > 1 for world in worlds) < 10


@pytest.mark.parametrize("options", [OPTIONS, PLAIN])
def test_repeated_connection_losses_do_not_starve_discovery_requests(options):
    world = opened(options)
    for _ in range(50):
        world.clock.advance(0.05 * OPTIONS.period_seconds)
        if world.connected and not world.pending:
            world.lose()
            world.connect()
    assert len(world.asked) > 1


def test_no_request_is_sent_for_half_a_period_after_a_lost_connection():
    worlds = [opened(options, seed) for seed in range(50) for options in (OPTIONS, PLAIN)]
    # When the due request is obsolete
    for world in worlds:
        world.clock.advance(0.49 * OPTIONS.period_seconds)
        world.lose()
        world.connect()
        world.clock.advance(0.49 * OPTIONS.period_seconds)
    assert all(len(world.asked) == 1 for world in worlds)


def test_a_watch_is_requested_within_a_period_and_polls_become_rare():
    world = opened(OPTIONS)
    world.calm(OPTIONS.period_seconds)
    listings = len(world.listings)
    world.calm(20 * OPTIONS.period_seconds)
    assert OpenWatch in [type(action) for _, action in world.asked][:3]
    assert 3 <= len(world.listings) - listings <= 5


def test_watches_lost_simultaneously_are_reopened_spread_over_the_period():
    worlds = [watched(seed) for seed in range(100)]
    delays = []
    for world in worlds:
        lost_at, asked = world.clock.now(), len(world.asked)
        world.lose()
        world.clock.advance(1.5 * OPTIONS.period_seconds)
        # Then each is requested once, and answered with a list
        ((at, action),) = world.asked[asked:]
        assert isinstance(action, OpenWatch)
        delays.append((at - lost_at) / OPTIONS.period_seconds)
    # and attaching clients are undisturbed
    assert 0.5 <= min(delays) < 0.6
    assert 1.4 < max(delays) <= 1.5


def test_a_watch_is_reopened_soon_after_a_long_outage():
    world = watched()
    world.lose()
    for _ in range(100):
        world.clock.advance(OPTIONS.period_seconds / 5)
        while world.pending:
            world.refuse(Unanswered.UNREACHABLE)
    world.calm(1.1 * OPTIONS.period_seconds)
    assert world.watching


def test_a_refused_watch_is_retried_later():
    world = refusing(pb.TooManyRequests)
    asked = len(world.asked)
    world.calm(OPTIONS.period_seconds)
    assert any(isinstance(action, OpenWatch) for _, action in world.asked[asked:])


def test_a_forbidden_watch_is_not_retried_on_the_same_connection():
    world = refusing(pb.NotAllowedError)
    asked = len(world.asked)
    world.calm(10 * OPTIONS.period_seconds)
    assert all(isinstance(action, ListTopics) for _, action in world.asked[asked:])


@pytest.mark.parametrize("options", [PLAIN, replace(OPTIONS, persistent=False)])
def test_topics_filtered_by_properties_or_non_persistent_are_polled_and_never_watched(options):
    world = opened(options)
    world.calm(10 * OPTIONS.period_seconds)
    assert all(isinstance(action, ListTopics) for _, action in world.asked)


def test_an_update_with_a_mismatched_hash_causes_a_new_listing():
    world = watched()
    world.change("t-1", told=False)
    world.change("t-2")
    world.clock.advance(5.2)
    assert [type(one) for one in world.pending] == [ListTopics]


def test_frequent_mismatched_updates_cause_a_single_listing():
    world = watched()
    world.change("t-1", told=False)
    listings = len(world.listings)
    for turn in range(60):
        world.change(f"t-{2 + turn % 2}")
        world.clock.advance(0.1)
    assert len(world.listings) - listings == 1


def test_closing_ends_the_watch_and_sends_no_more_requests():
    world = watched()
    asked = len(world.asked)
    world.schedule.close()
    world.clock.advance(20 * OPTIONS.period_seconds)
    assert not world.watching
    assert len(world.asked) == asked
