"""Many entries of a consumer redelivered, left, skipped, expired."""

from collections.abc import Callable
from functools import partial

import proto.PulsarApi_pb2 as pb
from broker.messages.position import EARLIEST
from broker.messages.subscriptions.consumer import SubType
from tests.proof.sizes.dispatch.measured_subscription import MeasuredSubscription
from tests.proof.sizes.dispatch.quiet_consumer import called, settled
from tests.proof.sizes.measured_turns import PUBLISHED, MeasuredTurns

KINDS = (pb.CommandSubscribe.Shared, pb.CommandSubscribe.Key_Shared)
CLIENTS_IDS = 1_000
"""Messages that an official client redelivers by one command."""


async def given_back(kind: SubType.ValueType, turns: MeasuredTurns) -> None:
    """Redeliver all entries of a consumer, in one command and in several, and then acknowledge
    them.
    """
    found = await MeasuredSubscription.made(turns, "back", kind)
    subscription, consumer, count = found.subscription, found.consumer(), found.count
    await found.measure(f"{count:,} are delivered", consumer.receive(count))
    give_back_all = partial(subscription.redeliver, consumer.consumer, (), None)

    async def all_at_once() -> None:
        await called(give_back_all)
        await consumer.receive(count)

    await found.measure(f"{count:,} are given back and come again", all_at_once())

    async def by_ids() -> None:
        await consumer.give_back(found.places, CLIENTS_IDS)
        await consumer.receive(count)

    await found.measure(f"{count:,} are given back by {CLIENTS_IDS:,} ids each", by_ids())

    async def acknowledged_then() -> None:
        await called(give_back_all)
        await settled(lambda: not consumer.consumer.pending)
        await consumer.acknowledge(found.places[1:-1])
        await consumer.receive(2)

    await found.measure(f"{count:,} given back are acknowledged, then a FLOW", acknowledged_then())
    await found.delete()


async def left(kind: SubType.ValueType, turns: MeasuredTurns) -> None:
    """Disconnect a consumer with entries, with and without a successor; close it by a seek."""
    found = await MeasuredSubscription.made(turns, "leaves", kind)
    consumer, count = await found.full_consumer(), found.count
    other = found.consumer(0, "other")

    async def to_another() -> None:
        await consumer.leave()
        await other.receive(count)

    await found.measure(f"a consumer leaves {count:,} to another", to_another())
    await found.measure(f"a consumer leaves {count:,} to nobody", other.leave())
    await found.full_consumer("third")
    seek = called(partial(found.subscription.seek, EARLIEST))
    await found.measure(f"a seek closes a consumer that has {count:,}", seek)
    await found.delete()


async def moved(kind: SubType.ValueType, waits: bool, turns: MeasuredTurns) -> None:
    """Skip, expire and clear a consumer's entries, and entries that wait for redelivery."""
    found = await MeasuredSubscription.made(turns, f"moved-{waits}", kind)
    subscription, consumer = found.subscription, await found.full_consumer()
    if waits:
        subscription.redeliver(consumer.consumer, (), None)
        await settled(lambda: not consumer.consumer.pending)
    third, where = found.count // 3, "wait" if waits else "a consumer has"

    async def followed(work: Callable[[], object]) -> None:
        await called(work)
        await found.all_left()

    skip = partial(subscription.skip, third)
    await found.measure(f"{third:,} are skipped that {where}", followed(skip))
    expire = partial(subscription.expire_older, PUBLISHED + 2 * third)
    await found.measure(f"{third:,} expire that {where}", followed(expire))
    clear = partial(found.topic.subscriptions.clear_backlogs, internal=True)
    await found.measure(f"{third:,} are cleared that {where}", followed(clear))
    await found.delete()


GROUPS = tuple(
    group
    for kind in KINDS
    for group in (
        partial(given_back, kind),
        partial(left, kind),
        partial(moved, kind, False),
        partial(moved, kind, True),
    )
)
