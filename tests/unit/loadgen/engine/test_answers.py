import pytest

import proto.PulsarApi_pb2 as pb
from loadgen.engine import answers
from loadgen.engine.answers import AnswerChecker, AnswerVerdict, verify_answer
from loadgen.plan.clients import Namespace
from proto.topic_hash import topics_hash
from tests.support.peers.stand_in_broker import listing_body, topic_names

NAMES = topic_names("load/ns", 20)
RIGHT = Namespace(name="load/ns", topics=20, hash=topics_hash(NAMES))
UNKNOWN = Namespace(name="load/ns")


def submit(checker: AnswerChecker, data: bytes, expectation=UNKNOWN, step: int = 7):
    body = checker.body(expectation)
    for start in range(0, len(data), step):
        body.feed(memoryview(data)[start : start + step])
    return body, checker.submit(body)


def verdict_of(data: bytes, expectation=UNKNOWN) -> AnswerVerdict:
    return submit(AnswerChecker(), data, expectation)[1].verdict()


def test_a_correct_answer_is_accepted_in_any_order_of_names() -> None:
    for names in (NAMES, NAMES[::-1]):
        verdict = verdict_of(listing_body(names), RIGHT)
        assert verdict == AnswerVerdict(20, RIGHT.hash)


@pytest.mark.parametrize(
    ("body", "expectation", "problem"),
    [
        (listing_body(NAMES[1:], topics_hash(NAMES)), UNKNOWN, "says hash"),
        (listing_body(NAMES[1:]), RIGHT, "lists 19 topics, expected 20"),
        (listing_body([*NAMES[1:], "x"]), RIGHT, "expected " + str(RIGHT.hash)),
        (b"\x12\x7f", UNKNOWN, "is not a CommandGetTopicsOfNamespaceResponse"),
        (b"\x28\x00", UNKNOWN, "nothing changed"),
    ],
)
def test_a_wrong_answer_is_reported_with_its_problem(
    body: bytes, expectation, problem: str
) -> None:
    assert problem in (verify_answer(body, expectation).problem or "")


def test_an_answer_without_a_hash_is_checked_against_the_expected_names() -> None:
    body = listing_body(NAMES).replace(b"\x22\x08" + str(RIGHT.hash).encode(), b"")
    assert verify_answer(body, RIGHT).problem is None


def test_answers_of_the_same_bytes_are_verified_once_and_stored_once(monkeypatch) -> None:
    verified: list[bytes] = []
    real = answers.verify_answer
    monkeypatch.setattr(
        answers, "verify_answer", lambda body, known: (verified.append(body), real(body, known))[1]
    )
    checker = AnswerChecker()
    data = listing_body(NAMES)
    submitted = [submit(checker, data, RIGHT, step) for step in (5, 11, 4096)]
    verdicts = {pending.verdict() for _, pending in submitted}
    assert verdicts == {AnswerVerdict(20, RIGHT.hash)}
    assert verified == [data]
    assert all(body.own is None for body, _ in submitted)


def test_an_answer_that_differs_in_a_single_byte_is_stored_separately() -> None:
    # Given a correct answer
    data = listing_body(NAMES)
    for place in range(len(data)):
        checker = AnswerChecker()
        submit(checker, data, RIGHT)
        changed = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        body, _ = submit(checker, changed, RIGHT)
        assert body.own is not None
        assert body.data() == changed


def test_interleaved_readers_of_a_namespace_share_the_same_bytes() -> None:
    checker = AnswerChecker()
    data = memoryview(listing_body(NAMES))
    first, second = checker.body(RIGHT), checker.body(RIGHT)
    first.feed(data[:10])
    second.feed(data[:50])
    first.feed(data[10:])
    second.feed(data[50:])
    assert checker.submit(first).verdict() == checker.submit(second).verdict()
    assert first.own is None
    assert second.own is None


def test_a_prefix_of_a_known_answer_is_verified_separately() -> None:
    checker = AnswerChecker()
    long, short = listing_body(NAMES), listing_body(NAMES)[:-2]
    submit(checker, long, RIGHT)[1].verdict()
    verdict = submit(checker, short, RIGHT)[1].verdict()
    # Then the last field, changed, is missing: the default is equal
    assert verdict.problem is None
    assert submit(checker, long[:100], RIGHT)[1].verdict().problem is not None


def test_an_answer_that_contradicts_another_answer_of_the_namespace_is_wrong() -> None:
    checker = AnswerChecker()
    first = submit(checker, listing_body(NAMES))[1].verdict()
    second = submit(checker, listing_body(NAMES[1:]))[1].verdict()
    assert first.problem is None
    assert "another answer of the same namespace 20" in (second.problem or "")


def test_an_answer_to_a_pattern_is_not_checked_against_the_whole_namespace() -> None:
    body = AnswerChecker().body(RIGHT, "t-.*")
    body.feed(memoryview(listing_body(NAMES[:3])))
    assert body.verdict().problem is None


def test_answers_of_a_changing_namespace_may_differ() -> None:
    checker, changing = AnswerChecker(), RIGHT.model_copy(update={"changes": True})
    for names in (NAMES, NAMES[1:]):
        assert submit(checker, listing_body(names), changing)[1].verdict().problem is None


def test_differing_answers_above_the_memory_limit_are_verified_but_not_kept(monkeypatch) -> None:
    monkeypatch.setattr(answers, "PENDING_LIMIT_BYTES", 100)
    checker = AnswerChecker()
    submit(checker, listing_body(NAMES), RIGHT)
    _, pending = submit(checker, listing_body(NAMES[::-1]), RIGHT)
    assert pending.own is None
    assert pending.verdict() == AnswerVerdict(20, RIGHT.hash)


UNCHANGED = pb.CommandGetTopicsOfNamespaceResponse(
    request_id=1, changed=False, topics_hash=RIGHT.hash
).SerializeToString()[2:]


def asked_again(checker: AnswerChecker, asked_hash: str, data: bytes) -> AnswerVerdict:
    body = checker.body(UNKNOWN, "", asked_hash)
    body.feed(memoryview(data))
    return checker.submit(body).verdict()


def test_an_unchanged_answer_is_correct_only_for_the_hash_of_the_names() -> None:
    checker = AnswerChecker()
    submit(checker, listing_body(NAMES))[1].verdict()
    verdicts = [asked_again(checker, each, UNCHANGED) for each in (str(RIGHT.hash), "deadbeef")]
    assert verdicts[0] == AnswerVerdict(None, "")
    assert "behind hash deadbeef" in (verdicts[1].problem or "")


def test_an_unchanged_answer_with_names_is_wrong() -> None:
    data = UNCHANGED + listing_body(NAMES[:1])[:-2]
    verdict = asked_again(AnswerChecker(), str(RIGHT.hash), data)
    assert verdict.problem == "says that nothing changed, and lists 1 topics"


def test_a_full_answer_to_a_request_with_a_hash_is_verified() -> None:
    found = asked_again(AnswerChecker(), "deadbeef", listing_body(NAMES))
    assert found == AnswerVerdict(20, RIGHT.hash)


def test_answers_to_different_patterns_share_no_bytes_and_need_not_agree() -> None:
    checker = AnswerChecker()
    whole, part = checker.body(UNKNOWN), checker.body(UNKNOWN, "t-.*")
    whole.feed(memoryview(listing_body(NAMES)))
    part.feed(memoryview(listing_body(NAMES[:3])))
    assert part.own is None
    assert [each.verdict().problem for each in (whole, part)] == [None, None]
