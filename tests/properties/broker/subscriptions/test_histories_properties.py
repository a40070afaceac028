"""Whatever consumers do, nothing that is not acknowledged is lost, and nothing else comes again."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.messages.history import STEPS, History
from tests.support.messages.model import SubType

STEP = st.tuples(st.sampled_from(STEPS), st.integers(0, 7), st.integers(0, 7), st.booleans())
KINDS = [SubType.Exclusive, SubType.Failover, SubType.Shared, SubType.Key_Shared]


@settings(deadline=None, max_examples=800, report_multiple_bugs=False)
@given(
    kind=st.sampled_from([*KINDS, SubType.Shared, SubType.Key_Shared]),
    limits=st.sampled_from([(0, 0), (0, 0), (3, 0), (0, 6), (4, 6)]),
    waiting=st.integers(0, 8),
    room=st.sampled_from([1, 4, 30]),
    steps=st.lists(STEP, min_size=20, max_size=60),
)
def test_nothing_is_lost_and_nothing_acknowledged_comes_again(
    kind: SubType.SubType.ValueType,
    limits: tuple[int, int],
    waiting: int,
    room: int,
    steps: list[tuple[str, int, int, bool]],
) -> None:
    asyncio.run(_play(kind, limits, waiting, room, steps))


async def _play(
    kind: SubType.SubType.ValueType,
    limits: tuple[int, int],
    waiting: int,
    room: int,
    steps: list[tuple[str, int, int, bool]],
) -> None:
    # Given: two consumers with some room, and messages
    history = await History.of(kind, *limits)
    await history.do("join", 0, room)
    await history.do("join", 0, room)
    for number in range(waiting):
        await history.do("publish", number % 5, number)
    # When: every step is checked
    for what, first, second, turn_ends in steps:
        await history.do(what, first, second, turn_ends=turn_ends)
    # Then
    await history.finish()
