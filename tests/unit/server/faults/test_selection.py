"""A fault's selection by command and client."""

from fnmatch import fnmatchcase

import pytest
from hypothesis import given
from hypothesis import strategies as st

import proto.PulsarApi_pb2 as pb
from server.documents import DocumentError
from server.faults.fault import Where
from server.faults.selection import Pattern, Selection

Type = pb.BaseCommand
TOPIC = "persistent://public/default/orders"


class Someone:
    """A client with a producer 1 and a consumer 2."""

    peer = "127.0.0.1:5000"
    client_version = "Pulsar-Java-v4.0.1"

    def topic_of_producer(self, producer_id: int) -> str:
        return TOPIC if producer_id == 1 else ""

    def topic_of_consumer(self, consumer_id: int) -> str:
        return TOPIC if consumer_id == 2 else ""


LOOKUP = Type(type=Type.LOOKUP, lookupTopic=pb.CommandLookupTopic(topic="orders", request_id=1))
SEND = Type(type=Type.SEND, send=pb.CommandSend(producer_id=1, sequence_id=0))
FLOW = Type(type=Type.FLOW, flow=pb.CommandFlow(consumer_id=2, messagePermits=1))
LISTING = Type(
    type=Type.GET_TOPICS_OF_NAMESPACE,
    getTopicsOfNamespace=pb.CommandGetTopicsOfNamespace(request_id=1, namespace="public/default"),
)
PING = Type(type=Type.PING, ping=pb.CommandPing())
ALL = {"lookup": LOOKUP, "send": SEND, "flow": FLOW, "listing": LISTING, "ping": PING}


@pytest.mark.parametrize(
    ("where", "chosen"),
    [
        ({}, {*ALL}),
        ({"topic": TOPIC}, {"lookup", "send", "flow"}),
        ({"topic": "*/orders"}, {"lookup", "send", "flow"}),
        ({"topic": "persistent://public/default/other"}, set()),
        ({"namespace": "public/*"}, {"lookup", "send", "flow", "listing"}),
        ({"namespace": "other/default"}, set()),
        ({"clientVersion": "Pulsar-Java-*"}, {*ALL}),
        ({"clientVersion": "Pulsar-CPP-*"}, set()),
        ({"connection": "127.0.0.1:5000"}, {*ALL}),
        ({"connection": "127.0.0.1:5001"}, set()),
        ({"connection": "127.*", "topic": "*other"}, set()),
    ],
)
def test_a_command_is_selected_only_if_all_conditions_match(
    where: dict[str, str], chosen: set[str]
) -> None:
    selection, someone = Selection(Where.of(where)), Someone()
    found = {
        name
        for name, command in ALL.items()
        if selection.may_fit(someone) and selection.fits(someone, command)
    }
    assert found == chosen


def test_a_connect_is_selected_by_its_own_client_version() -> None:
    someone = Someone()
    someone.client_version = ""
    selection = Selection(Where(client_version="new*"))
    connects = [
        Type(type=Type.CONNECT, connect=pb.CommandConnect(client_version=version))
        for version in ("newer", "old")
    ]
    assert selection.may_fit(someone)
    assert [selection.fits(someone, one) for one in connects] == [True, False]


@given(st.text("ab*", max_size=8), st.text("ab", max_size=8))
def test_a_star_matches_any_text(pattern: str, text: str) -> None:
    assert Pattern(pattern).fits(text) is fnmatchcase(text, pattern)


@pytest.mark.parametrize(
    ("pattern", "text"), [("*a*a*", "a"), ("*ab*ba*", "aba"), ("ab*ba", "aba"), ("a*b*", "ba")]
)
def test_no_character_is_matched_twice(pattern: str, text: str) -> None:
    assert not Pattern(pattern).fits(text)


@pytest.mark.parametrize(
    "topic", ["orders", "public/default/orders", "ord*", "persistent:/", "x://*"]
)
def test_a_topic_pattern_that_no_full_name_matches_is_refused_with_examples(topic: str) -> None:
    with pytest.raises(DocumentError, match="persistent://public/default/orders or \\*/orders"):
        Where.of({"topic": topic})


@pytest.mark.parametrize("topic", [TOPIC, "non-persistent://a/*", "*", "*orders", "p*", "non-*s"])
def test_a_topic_pattern_that_a_full_name_may_match_is_accepted(topic: str) -> None:
    assert Where.of({"topic": topic}).topic == topic


@pytest.mark.parametrize(
    ("where", "remedy"),
    [
        ({"namespace": "default"}, "no namespace fits 'default': write it as public/default"),
        ({"connection": "127.0.0.1"}, "no address fits '127.0.0.1': write it as 127.0.0.1:\\*"),
    ],
)
def test_a_pattern_that_can_match_no_name_or_address_is_refused_with_a_remedy(
    where: dict[str, str], remedy: str
) -> None:
    with pytest.raises(DocumentError, match=remedy):
        Where.of(where)
