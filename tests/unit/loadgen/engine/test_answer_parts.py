"""Parts of an answer are read where they stand, once for all who share its bytes."""

from __future__ import annotations

import pytest

import proto.PulsarApi_pb2 as pb
from client.discovery.topics_pattern import TopicsPattern
from loadgen.engine import answers as answer_parts
from loadgen.engine.answers import AnswerChecker, ending, first_names
from loadgen.plan.clients import Namespace
from proto.errors import RemoteProtocolError
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
    assert first_names(body_of(DATA), count) == NAMES[:count]


def test_names_that_do_not_match_are_passed_over() -> None:
    assert first_names(body_of(DATA), 2, TopicsPattern(NAMES[200])) == [NAMES[200]]


def test_hash_and_change_are_found_behind_all_names() -> None:
    assert ending(body_of(DATA)) == (topics_hash(NAMES), True)


def test_a_hash_that_is_not_said_is_none() -> None:
    response = pb.CommandGetTopicsOfNamespaceResponse(request_id=1, changed=False)
    assert ending(body_of(response.SerializeToString()[2:])) == (None, False)


def test_who_shares_the_bytes_shares_what_was_read(monkeypatch) -> None:
    # Given
    checker = AnswerChecker()
    first = body_of(DATA, checker)
    found = first_names(first, 2), ending(first)
    # When
    monkeypatch.setattr(answer_parts, "decode_varint", None)
    second = body_of(DATA, checker)
    # Then
    assert (first_names(second, 2), ending(second)) == found


@pytest.mark.parametrize("data", [b"\x12", b"\x12\xff", b"\x12" + b"\xff" * 12])
def test_an_answer_that_is_cut_off_is_no_list_of_names(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        first_names(body_of(data), 1)
    with pytest.raises(RemoteProtocolError):
        ending(body_of(data))
