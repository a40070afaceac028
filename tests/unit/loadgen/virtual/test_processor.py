import asyncio

import pytest

from loadgen.documents.service_times import FLOODGATE
from loadgen.virtual.loop import VirtualLoop
from loadgen.virtual.processor import Processor
from tests.support.discovery.scripted_broker import on_virtual_loop


def test_work_runs_sequentially_each_after_the_end_of_the_previous_work() -> None:
    began: list[tuple[int, float]] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        processor = Processor(loop, FLOODGATE)

        def work(number: int) -> None:
            began.append((number, loop.time()))
            processor.charge(2)

        for number in range(3):
            processor.serve(work, number)
        loop.call_at(3, processor.serve, work, 3)
        await asyncio.sleep(10)
        processor.serve(work, 4)

    on_virtual_loop(main)
    assert [number for number, _ in began] == [0, 1, 2, 3, 4]
    assert [when for _, when in began] == pytest.approx([0, 2, 4, 6, 10])
