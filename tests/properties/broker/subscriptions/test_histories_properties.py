"""Consumers' histories lose no unacknowledged message and repeat no other."""

import asyncio
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.properties.broker.subscriptions.history import STEPS, History
from tests.support.examples import many
from tests.support.messages.model import SubType

STEPS_EACH = 60
TURN_ENDS = 0.6
SEVERAL = [SubType.Shared, SubType.Key_Shared]
KINDS = [SubType.Exclusive, SubType.Failover, *SEVERAL, *SEVERAL]
LIMITS = [(0, 0), (0, 0), (3, 0), (0, 6), (4, 6)]
ROOM = [1, 4, 30]


@settings(deadline=None, max_examples=many(400))
@given(seed=st.integers(0, (1 << 32) - 1))
def test_no_message_is_lost_and_no_acknowledged_message_is_redelivered(seed: int) -> None:
    # A seed stands for a whole history: cheaper than a generated history.
    asyncio.run(_play(Random(seed)))


async def _play(random: Random) -> None:
    # Two consumers with some room
    history = await History.of(random.choice(KINDS), *random.choice(LIMITS))
    room = random.choice(ROOM)
    await history.do("join", 0, room)
    await history.do("join", 0, room)
    # Every step is checked
    for _ in range(STEPS_EACH):
        what, first, second = random.choice(STEPS), random.randrange(8), random.randrange(8)
        await history.do(what, first, second, turn_ends=random.random() < TURN_ENDS)
    await history.finish()
