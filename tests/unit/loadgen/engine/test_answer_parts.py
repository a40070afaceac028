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
def test_an_answer_yields_only_the_requested_number_of_first_names(count: int) -> None:
    assert body_of(DATA).told(count) == Told(topics_hash(NAMES), True, 300, NAMES[:count])


def test_names_that_do_not_match_the_pattern_are_skipped() -> None:
    assert body_of(DATA).told(2, TopicsPattern(NAMES[200])).names == [NAMES[200]]


def test_an_answer_without_a_hash_has_the_hash_none() -> None:
    response = pb.CommandGetTopicsOfNamespaceResponse(request_id=1, changed=False)
    assert body_of(response.SerializeToString()[2:]).told() == Told(None, False, 0, [])


def test_answers_of_the_same_bytes_are_parsed_once(monkeypatch) -> None:
    checker = AnswerChecker()
    told = body_of(DATA, checker).told(2)
    monkeypatch.setattr(answers, "parse_answer", None)
    assert body_of(DATA, checker).told(2) == told


@pytest.mark.parametrize("data", [b"\x12", b"\x12\xff", b"\x12" + b"\xff" * 12, b"\x12\x01\xff"])
def test_a_malformed_answer_yields_no_names_and_is_wrong(data: bytes) -> None:
    body = body_of(data)
    assert body.told(1) == Told()
    assert "is not a Command" in (body.verdict().problem or "")
