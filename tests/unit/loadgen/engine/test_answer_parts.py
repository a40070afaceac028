"""An answer's content is read once for all recipients of the same bytes."""

import pytest

import proto.PulsarApi_pb2 as pb
from client.discovery.topics_pattern import TopicsPattern
from loadgen.engine import answers
from loadgen.engine.answers import AnswerChecker, Told
from loadgen.plan.clients import Namespace
from proto.topic_hash import topics_hash
from tests.support.peers.stand_in_broker import listing_body, topic_names

NAMESPACE = Namespace(name="load/ns")
NAMES = topic_names("load/ns", 300, 200)
DATA = listing_body(NAMES)


def body_of(data, checker=None):
    body = (checker or AnswerChecker()).body(NAMESPACE)
    body.feed(memoryview(data))
    return body


@pytest.mark.parametrize("count", [0, 1, 7, 300, 400])
def test_the_first_names_are_told_and_no_more(count: int) -> None:
    assert body_of(DATA).told(count) == Told(topics_hash(NAMES), True, 300, NAMES[:count])


def test_names_that_do_not_match_are_passed_over() -> None:
    assert body_of(DATA).told(2, TopicsPattern(NAMES[200])).names == [NAMES[200]]


def test_a_hash_that_is_not_said_is_none() -> None:
    response = pb.CommandGetTopicsOfNamespaceResponse(request_id=1, changed=False)
    assert body_of(response.SerializeToString()[2:]).told() == Told(None, False, 0, [])


def test_who_shares_the_bytes_shares_what_was_read(monkeypatch) -> None:
    checker = AnswerChecker()
    told = body_of(DATA, checker).told(2)
    monkeypatch.setattr(answers, "parse_answer", None)
    assert body_of(DATA, checker).told(2) == told


@pytest.mark.parametrize("data", [b"\x12", b"\x12\xff", b"\x12" + b"\xff" * 12, b"\x12\x01\xff"])
def test_an_answer_that_is_no_list_of_names_tells_nothing_and_is_wrong(data: bytes) -> None:
    body = body_of(data)
    assert body.told(1) == Told()
    assert "is not a Command" in (body.verdict().problem or "")
