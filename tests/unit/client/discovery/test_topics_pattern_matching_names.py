import pytest

from client.discovery.topics_pattern import NAMES_IN_A_STEP, MatchingNames, TopicsPattern
from proto.errors import RemoteProtocolError
from proto.parsing.varint import encode_varint
from proto.topics_response import TopicsAnswer, encode_topics_response, read_topics_head

BASE = "persistent://public/default/"
PATTERN = TopicsPattern(BASE + "t-.*")


def answer_of(names, *, filtered=False, changed=True, topics_hash="01020304"):
    """Return an answer as received from a connection."""
    encoded = [b"\x12" + encode_varint(len(name.encode())) + name.encode() for name in names]
    frame = b"".join(
        encode_topics_response(
            7, encoded, sum(map(len, encoded)), topics_hash, filtered=filtered, changed=changed
        ).buffers
    )
    body = frame[4:]
    _, offset = read_topics_head(body)
    return TopicsAnswer(len(body), [memoryview(body)], offset)


def read(answer):
    """Return the names found in an answer, and the number of steps."""
    found = MatchingNames(answer, PATTERN)
    return found, sum(1 for _ in found.read())


def test_only_names_that_match_are_kept():
    names = [f"{BASE}other-{number}" for number in range(3 * NAMES_IN_A_STEP)]
    found, steps = read(answer_of([*names, BASE + "t-1", BASE + "t-2-partition-0"]))
    assert found.names == {BASE + "t-1", BASE + "t-2-partition-0"}
    assert steps == 3
    assert (found.topics_hash, found.filtered, found.changed) == ("01020304", False, True)


def test_the_answer_is_released_while_its_names_are_read():
    answer = answer_of([f"{BASE}other-{number}" for number in range(NAMES_IN_A_STEP)])
    next(MatchingNames(answer, PATTERN).read())
    assert answer.rest == []


def test_names_filtered_by_the_broker_are_kept_unchecked():
    found, _ = read(answer_of([BASE + "u"], filtered=True))
    assert found.names == {BASE + "u"}


def test_an_unchanged_list_has_no_names():
    found, _ = read(answer_of([], filtered=True, changed=False))
    assert (found.names, found.changed) == (set(), False)


@pytest.mark.parametrize(
    "rest", [b"\x12\x05abc", b"\x12\x01\xff", b"\x15\x00\x00\x00\x00", b"\x12"]
)
def test_a_malformed_listing_is_refused(rest):
    with pytest.raises(RemoteProtocolError):
        read(TopicsAnswer(len(rest), [memoryview(rest)], 0))
