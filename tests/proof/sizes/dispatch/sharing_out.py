"""Many entries for a single key, all hashes draining, and many consumers."""

import asyncio
from functools import partial

import proto.PulsarApi_pb2 as pb
from broker.messages.position import EARLIEST
from broker.messages.subscriptions.consumer import SubType
from broker.messages.subscriptions.dispatchers.key_shared import KeySharedDispatcher
from tests.proof.sizes.dispatch.measured_subscription import MeasuredSubscription
from tests.proof.sizes.dispatch.quiet_consumer import QuietConnection, QuietConsumer, called
from tests.proof.sizes.measured_turns import NAMESPACE, MeasuredTurns, fetched

Shared, Key_Shared = pb.CommandSubscribe.Shared, pb.CommandSubscribe.Key_Shared
SLOW = "slow"
KEYS = 200_000
"""The consumers with nearly every hash."""
OTHERS, FLOWS = 20, 10
MANY, FEW, FLOWS_IN_A_ROW = 10_000, 100, 1_000


async def blocked_keys(turns: MeasuredTurns) -> None:
    """Block the consumer of a single key, while other keys are delivered."""
    found = await MeasuredSubscription.made(
        turns, "blocked", Key_Shared, key=lambda at: SLOW if at % 10 else f"key-{at}"
    )
    holder = await found.full_consumer("holder")
    others = [found.consumer(0, f"other-{number}") for number in range(OTHERS)]
    await holder.leave()
    dispatcher = found.dispatcher
    assert isinstance(dispatcher, KeySharedDispatcher)
    slow = dispatcher.ring.select(dispatcher.ring.hash_of(SLOW.encode()))

    async def to_others() -> None:
        await found.all_left()
        for consumer in FLOWS * [one for one in others if one.consumer is not slow]:
            found.subscription.flow(consumer.consumer, 10)
            await asyncio.sleep(0)

    await found.measure(f"{found.count:,} wait, most for one key", to_others())
    await found.delete()


async def draining(turns: MeasuredTurns) -> None:
    """Add a consumer while another holds every hash, show statistics, and disconnect the holder."""
    count = min(KEYS, turns.sizes.entries)
    found = await MeasuredSubscription.made(
        turns, "draining", Key_Shared, count, key=lambda at: f"key-{at}"
    )
    holder = await found.full_consumer("holder")
    join = called(partial(found.consumer, 0, "other"))
    await found.measure("one joins who has a message of each hash", join)
    name = found.topic.name.local_name
    stats = f"{turns.broker.web_service_url}/admin/v2/persistent/{NAMESPACE}/{name}/stats"
    show = asyncio.to_thread(fetched, stats)
    await found.measure("stats of hashes that drain", show)
    await found.measure("who has a message of each hash leaves", holder.leave())
    await found.delete()


async def many_consumers(kind: SubType.ValueType, turns: MeasuredTurns) -> None:
    """Deliver to many consumers, few of them with permits; close all."""
    count = min(MANY, turns.sizes.entries // 10)
    found = await MeasuredSubscription.made(turns, "consumers", kind, 2 * count)
    there: list[QuietConsumer] = []
    cnx = QuietConnection()

    async def joined() -> None:
        for number in range(count):
            there.append(found.consumer(0, f"c-{number}", cnx))
            await asyncio.sleep(0)

    async def have_room(consumers: list[QuietConsumer], permits: int) -> None:
        for one in consumers:
            found.subscription.flow(one.consumer, permits)
            await asyncio.sleep(0)

    await found.measure(f"{count:,} consumers join, one a turn", joined())
    few = have_room(there[:: max(1, count // FEW)], 10)
    await found.measure(f"few of {count:,} consumers have room", few)
    some = have_room(there[:FLOWS_IN_A_ROW], 1)
    await found.measure(f"some of {count:,} consumers have room for one", some)
    seek = called(partial(found.subscription.seek, EARLIEST))
    await found.measure(f"{count:,} consumers are closed by a seek", seek)
    await found.delete()


GROUPS = (
    blocked_keys,
    draining,
    *(partial(many_consumers, kind) for kind in (Shared, Key_Shared)),
)
