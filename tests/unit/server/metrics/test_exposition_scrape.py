"""A scrape is written in steps, without overlap."""

import asyncio
from collections.abc import Collection, Generator

import pytest
from prometheus_client import CollectorRegistry

from server.metrics.exposition import SampleTable, Scrapes, TextFamily
from server.tasks.cooperative import Steps
from tests.support.clocks.settle import settle, started
from tests.support.processes.samples import read_samples


def table(samples: int) -> SampleTable:
    found = SampleTable("about {}".format)
    for number in range(samples):
        found.gauge("g", {"number": str(number)}, number)
    found.counter("c", {}, 3, created=5)
    found.summary("s", {}, {"0.5": 1.0}, 2, 7.5)
    return found


def gathered(samples: int) -> Generator[None, None, Collection[TextFamily]]:
    yield
    return table(samples).families


@pytest.mark.parametrize("samples", [0, 1, 95, 96, 1_000])
async def test_gathered_samples_of_any_number_are_written(samples: int) -> None:
    scrapes = Scrapes(CollectorRegistry(), lambda: gathered(samples))
    text = b"".join(await scrapes.text(as_openmetrics=False)).decode()
    found = {(one.name, one.type, *one.labels.values()): one.value for one in read_samples(text)}
    expected: dict[tuple[str, ...], float] = {
        **{("g", "gauge", str(number)): number for number in range(samples)},
        ("c_total", "counter"): 3,
        ("c_created", "gauge"): 5,
        ("s", "summary", "0.5"): 1,
        ("s_count", "summary"): 2,
        ("s_sum", "summary"): 7.5,
    }
    assert found == expected


async def test_openmetrics_ends_with_its_eof_mark() -> None:
    scrapes = Scrapes(CollectorRegistry(), lambda: gathered(1))
    text = b"".join(await scrapes.text(as_openmetrics=True))
    assert text.decode().splitlines()[-1] == "# EOF"
    assert b"# TYPE c counter\n" in text


async def test_a_long_scrape_yields_to_further_tasks() -> None:
    # A step is a turn
    scrapes, turns = Scrapes(CollectorRegistry(), lambda: gathered(20_000)), 0
    scrapes._steps = Steps(turn_seconds=0.0)
    scrape = asyncio.create_task(scrapes.text(as_openmetrics=False))
    while not scrape.done():
        await asyncio.sleep(0)
        turns += 1
    assert turns > 20_000 // 1_000


async def test_a_second_scrape_waits_for_the_first() -> None:
    begun, may_end = 0, False

    def slow() -> Generator[None, None, Collection[TextFamily]]:
        nonlocal begun
        begun += 1
        while not may_end:
            yield
        return ()

    scrapes = Scrapes(CollectorRegistry(), slow)
    both = [await started(scrapes.text(as_openmetrics=False)) for _ in range(2)]
    await settle()
    assert begun == 1
    may_end = True
    await asyncio.gather(*both)
    assert begun == 2
