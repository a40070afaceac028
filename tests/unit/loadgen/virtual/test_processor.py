import asyncio

import pytest

from loadgen.documents.service_times import FLOODGATE
from loadgen.virtual.loop import VirtualLoop
from loadgen.virtual.processor import SIDE_BY_SIDE, Processor, Threads


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

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    assert [number for number, _ in began] == [0, 1, 2, 3, 4]
    assert [when for _, when in began] == pytest.approx([0, 2, 4, 6, 10])


def test_work_of_the_same_queue_runs_sequentially_beside_work_of_other_queues() -> None:
    done: dict[str, float] = {}

    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        threads = Threads(Processor(loop, FLOODGATE), 2)

        async def work(name: str, queue: str) -> None:
            await threads.work(2, queue)
            done[name] = loop.time()

        queues = {"a": "store", "b": "store", "c": "limiter", "d": SIDE_BY_SIDE, "e": SIDE_BY_SIDE}
        await asyncio.gather(*(work(name, queue) for name, queue in queues.items()))

    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        runner.run(main())
    # Two threads: "b" waits for "a" of its queue, "d" and "e" for a thread.
    assert done == pytest.approx({"a": 2, "c": 2, "b": 4, "d": 4, "e": 6})
