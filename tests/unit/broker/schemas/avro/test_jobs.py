"""Jobs and answers as bytes."""

from io import BytesIO

import pytest

from broker.schemas.avro.jobs import LENGTH, Answer, Job
from broker.schemas.avro.judge import without_avro
from broker.schemas.avro.judging import judged
from broker.schemas.avro.worker import serve
from tests.support.schemas import field, optional, record

A, B, OTHER = record(field("a")), record(field("a"), optional("b")), record(field("c"))


def test_a_job_is_restored_from_its_bytes() -> None:
    job = Job(A, [B, b""], [OTHER], "FULL")
    data = job.packed()
    assert LENGTH.unpack_from(data)[0] == len(data) - LENGTH.size
    assert Job.of(data[LENGTH.size :]) == job


def test_a_job_is_judged_same_new_unreadable_incompatible_or_union() -> None:
    assert judged(Job(A, [B, A], [], "FULL")) == Answer(same=1)
    assert judged(Job(B, [A], [A], "FULL")) == Answer()
    assert judged(Job(b"nonsense", [A], [A], "FULL")).unreadable
    assert judged(Job(OTHER, [A], [A], "FULL")).incompatible.startswith("Unable to read schema: ")
    assert judged(Job(b'["null", "int"]', [], [], "")).is_union


def test_a_worker_answers_each_job_and_ends_with_its_input() -> None:
    jobs = [Job(A, [A], [], ""), Job(b"nonsense", [], [], ""), Job(b"[" * 9_000, [], [], "")]
    answers = BytesIO()
    serve(BytesIO(b"".join(job.packed() for job in jobs)), answers)
    data, found = answers.getvalue(), []
    while data:
        size = LENGTH.unpack_from(data)[0]
        found.append(Answer.of(data[LENGTH.size : LENGTH.size + size]))
        data = data[LENGTH.size + size :]
    assert [answer.same for answer in found] == [0, None, None]
    assert [bool(answer.unreadable) for answer in found] == [False, True, True]


@pytest.mark.parametrize(
    ("definition", "alike", "compared", "answer"),
    [
        (b'{"a": 1}', [b"[]", b'{"a":1}'], [], Answer(1)),
        (b'{"a": 1}', [], [], Answer()),
        (b"{", [], [], "Expecting property name"),
        (b"1", [], [b"2"], "pulsar-floodgate[avro]"),
    ],
)
def test_without_the_avro_package_only_json_syntax_and_equality_are_judged(
    definition: bytes, alike: list[bytes], compared: list[bytes], answer: Answer | str
) -> None:
    found = without_avro(Job(definition, alike, compared, "FULL"))
    if isinstance(answer, Answer):
        assert found == answer
    else:
        assert answer in found.unreadable + found.incompatible
