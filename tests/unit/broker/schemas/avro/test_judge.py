"""The judge with separate processes."""

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from broker.schemas.avro.judge import SECONDS, ProcessJudge
from broker.schemas.errors import SchemaRefusedError
from broker.schemas.schema import Schema
from tests.support.clocks.manual_clock import ManualClock
from tests.support.processes.cluster import until
from tests.support.schemas import field, optional, record, stored

A = record(field("a"))


class Setup:
    """A judge on a manual clock."""

    def __init__(self, clock: ManualClock, judge: ProcessJudge) -> None:
        self.clock = clock
        self.judge = judge


@pytest_asyncio.fixture
async def setup() -> AsyncIterator[Setup]:
    clock = ManualClock()
    async with ProcessJudge(clock) as judge:
        yield Setup(clock, judge)


async def test_definitions_are_judged_in_a_separate_process(setup: Setup) -> None:
    same = await setup.judge.judge(Schema("AVRO", A), [stored(0, A)], [], "FULL")
    new = await setup.judge.judge(Schema("AVRO", A), [], [stored(0, A)], "FULL")
    assert (same, new) == (0, None)
    assert len(setup.judge._all) == 1


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"nonsense", "Invalid schema definition data for AVRO schema"),
        (b'["null", "int"]', "Avro schema typed [UNION] is not supported"),
        (record(field("c")), "Error during schema compatibility check with strategy FULL: "),
    ],
)
async def test_schema_refusals_have_the_recorded_texts(
    setup: Setup, data: bytes, text: str
) -> None:
    with pytest.raises(SchemaRefusedError) as caught:
        await setup.judge.judge(Schema("AVRO", data), [], [stored(0, A)], "FULL")
    assert caught.value.refusal.text.startswith(text)


async def test_a_judgement_over_its_time_limit_is_refused_and_ends_its_process(setup) -> None:
    large = record(*(optional(f"field_{index}") for index in range(10_000)))
    many = [stored(version, large) for version in range(20)]
    work = setup.judge.judge(Schema("AVRO", large), [], many, "FULL_TRANSITIVE")
    task = asyncio.ensure_future(work)
    await until(lambda: setup.judge._all)
    (worker,) = setup.judge._all
    setup.clock.advance(SECONDS)
    with pytest.raises(SchemaRefusedError, match="takes more than 10 s"):
        await task
    await until(lambda: worker.is_gone)


async def test_a_worker_that_ends_refuses_its_judgement_and_is_replaced_for_the_next(setup) -> None:
    await setup.judge.judge(Schema("AVRO", A), [], [], "")
    (worker,) = setup.judge._all
    large = [stored(0, record(*(optional(f"field_{index}") for index in range(10_000))))]
    task = asyncio.ensure_future(setup.judge.judge(Schema("AVRO", A), [], large, "FULL"))
    await until(lambda: not worker.usable)
    worker.end()
    with pytest.raises(SchemaRefusedError, match="a schema worker ended"):
        await task
    assert await setup.judge.judge(Schema("AVRO", A), [stored(0, A)], [], "") == 0
