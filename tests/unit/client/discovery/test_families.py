"""The schedules send the recorded requests of official clients, at the recorded times."""

import pytest

from client.discovery.families import schedule_of
from client.discovery.schedule import DiscoveryOptions
from client.exceptions import InvalidConfiguration
from tests.support.clocks.manual_clock import ManualClock
from tests.support.discovery.replay import Replay, recorded
from tests.support.discovery.scripts import SCRIPTS

SEEN = {"cpp": recorded("python"), "go": recorded("go")}
JAVA = recorded("java")
CASES = [(family, name) for family, seen in SEEN.items() for name in seen]
JAVA_CASES = [("java-watch" if SCRIPTS[name].watchers else "java-poll", name) for name in JAVA]


@pytest.mark.parametrize(("family", "name"), CASES + JAVA_CASES)
def test_requests_match_the_recordings_of_the_official_client(family, name):
    Replay(family, name, SEEN.get(family, JAVA)[name]).run()


@pytest.mark.parametrize("name", [name for name in JAVA if not SCRIPTS[name].watchers])
def test_a_watching_schedule_polls_a_broker_without_watches(name):
    Replay("java-watch", name, JAVA[name]).run()


def test_an_unknown_client_family_is_refused():
    with pytest.raises(InvalidConfiguration, match="choose one of polite, java-watch"):
        schedule_of("rude", DiscoveryOptions("t"), ManualClock(), lambda _: None)
