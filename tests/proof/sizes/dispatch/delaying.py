"""Messages that are not due yet: scanned, due together, skipped, left behind."""

from collections.abc import Callable
from functools import partial

import proto.PulsarApi_pb2 as pb
from limiter.clock import LoopClock
from tests.proof.sizes.dispatch.measured_subscription import MeasuredSubscription
from tests.proof.sizes.dispatch.quiet_consumer import called, settled
from tests.proof.sizes.measured_turns import MeasuredTurns
from tests.support.processes.cluster import until

Shared = pb.CommandSubscribe.Shared
LONG_MS = 600_000
_wall_ms = LoopClock().wall_ms


def _later(count: int) -> Callable[[int], int]:
    """Return when entries are due: the last first, so that the broker scans all."""
    first = _wall_ms() + LONG_MS
    return lambda number: first + 3 * (count - number)


async def delayed(turns: MeasuredTurns) -> None:
    """Deliver, skip and acknowledge delayed entries."""
    entries = turns.sizes.entries
    found = await MeasuredSubscription.made(turns, "delayed", Shared, deliver_at=_later(entries))
    consumer, count, subscription = found.consumer(), found.count, found.subscription

    async def looked_at() -> None:
        subscription.flow(consumer.consumer, count)
        await settled(lambda: len(found.dispatcher.delayed) == count)

    await found.measure(f"{count:,} delayed, one FLOW", looked_at())
    skip = partial(subscription.skip, count // 2)
    await found.measure(f"{count // 2:,} delayed are skipped", called(skip))
    # The due entries first.
    ack = consumer.acknowledge(found.places[: -count // 3 : -1])
    await found.measure(f"{count // 3:,} delayed are acknowledged", ack)
    skip = partial(subscription.skip, count)
    await found.measure("the rest of them is skipped", called(skip))
    await found.delete()


async def delayed_leaves(turns: MeasuredTurns) -> None:
    """Disconnect the only consumer while all entries are delayed."""
    entries = turns.sizes.entries
    found = await MeasuredSubscription.made(
        turns, "left-delayed", Shared, deliver_at=_later(entries)
    )
    consumer = found.consumer(found.count)
    await settled(lambda: len(found.dispatcher.delayed) == found.count)
    await found.measure(f"a consumer leaves {found.count:,} delayed", consumer.leave())
    await found.delete()


async def delayed_together(turns: MeasuredTurns) -> None:
    """Deliver entries due at the same moment."""
    count = turns.sizes.entries
    due = _wall_ms() + 3_000 + count // 20
    # A single entry has another delay, else the broker would not read so far.
    found = await MeasuredSubscription.made(
        turns, "due", Shared, deliver_at=lambda number: due if number else due + LONG_MS
    )
    consumer = found.consumer(count)
    await until(lambda: len(found.dispatcher.delayed) == count)
    await until(lambda: _wall_ms() > due - 1_500)
    await found.measure(f"{count:,} due at one moment", consumer.has(count - 1))
    await found.delete()


GROUPS = (delayed, delayed_leaves, delayed_together)
