"""Many entries acknowledged behind a hole, by a single ACK, in part."""

from collections.abc import Awaitable
from functools import partial

import proto.PulsarApi_pb2 as pb
from broker.messages.position import EARLIEST
from broker.messages.subscriptions.consumer import SubType
from tests.proof.sizes.dispatch.measured_subscription import MeasuredSubscription
from tests.proof.sizes.dispatch.quiet_consumer import QuietConsumer, called, message_ids
from tests.proof.sizes.measured_turns import MeasuredTurns

Exclusive, Shared = pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Shared
Key_Shared = pb.CommandSubscribe.Key_Shared
BATCH, WORDS = 640, 10
LARGE_BATCH, LARGE_WORDS, LARGE_BATCHES = 10_000, 157, 20_000


async def behind_a_hole(kind: SubType.ValueType, turns: MeasuredTurns) -> None:
    """Acknowledge all entries but the first, read and peek over the hole, then fill it."""
    found = await MeasuredSubscription.made(turns, "hole", kind)
    count, places, consumer = found.count, found.places, found.consumer()
    ack = consumer.acknowledge(places[1:-1])
    await found.measure(f"{count:,} are acknowledged behind a hole", ack)
    await found.measure(f"{count:,} acknowledged are read over", consumer.receive(2))
    peek = partial(found.subscription.cursor.nth_left, 2)
    await found.measure(f"the entry behind {count:,} acknowledged is peeked", called(peek))
    await found.measure(f"a cursor of {count:,} acknowledged is saved", found.save())
    first = consumer.acknowledge(places[:1])
    await found.measure(f"the hole before {count:,} is acknowledged", first)
    await found.delete()


async def skipped_over(turns: MeasuredTurns) -> None:
    """Skip the entries before and behind the acknowledged range."""
    found = await MeasuredSubscription.made(turns, "skipped-over", Shared)
    consumer = found.consumer()
    await consumer.acknowledge(found.places[1:-1])
    skip = called(partial(found.subscription.skip, 2))
    await found.measure(f"2 are skipped over {found.count:,} acknowledged", skip)
    await found.delete()


async def cumulatively(turns: MeasuredTurns) -> None:
    """Redeliver all, and acknowledge all by a single ACK."""
    found = await MeasuredSubscription.made(turns, "cumulative", Exclusive)
    (last,) = message_ids(found.places[-1:])
    subscription, consumer, count = found.subscription, found.consumer(), found.count
    await found.measure(f"{count:,} are delivered", consumer.receive(count))
    redeliver = partial(subscription.redeliver, consumer.consumer, (), None)
    await found.measure(f"{count:,} are given back", called(redeliver))
    ack = partial(subscription.acknowledge_cumulatively, consumer.consumer, last)
    await found.measure(f"{count:,} are acknowledged by one ACK", called(ack))
    await found.delete()


async def in_part(what: str, turns: MeasuredTurns) -> None:
    """Acknowledge batches in part, then all batches in one of several ways."""
    kind = Exclusive if what == "by one ACK" else Shared
    name = f"part-{what.replace(' ', '-')}"
    found = await MeasuredSubscription.made(turns, name, kind, messages=BATCH)
    consumer, count = found.consumer(), found.count
    ack = consumer.acknowledge(found.places, [-2] + [-1] * (WORDS - 1))
    await found.measure(f"{count:,} batches are acknowledged in part", ack)
    await found.measure(f"a cursor with {count:,} such batches is saved", found.save())
    await found.measure(f"{count:,} such batches are {what}", _done(found, consumer, what))
    if what != "deleted":
        await found.delete()


def _done(found: MeasuredSubscription, consumer: QuietConsumer, what: str) -> Awaitable[object]:
    subscription = found.subscription
    if what == "skipped":
        return called(partial(subscription.skip, found.count - 1))
    if what == "by one ACK":
        (last,) = message_ids(found.places[-1:])
        return called(partial(subscription.acknowledge_cumulatively, consumer.consumer, last))
    if what == "one by one":
        return consumer.acknowledge(found.places[::-1])
    if what == "sought":
        return called(partial(subscription.seek, EARLIEST))
    return found.delete()


async def in_large_parts(turns: MeasuredTurns) -> None:
    """Acknowledge the largest possible batches in part, store them and deliver the rest."""
    count = min(LARGE_BATCHES, turns.sizes.entries)
    found = await MeasuredSubscription.made(turns, "large-parts", Shared, count, LARGE_BATCH)
    consumer = found.consumer()
    ack = consumer.acknowledge(found.places, [-2] + [-1] * (LARGE_WORDS - 1))
    await found.measure(f"{count:,} of the largest batches are acknowledged in part", ack)
    await found.measure("a cursor with the largest batches is saved", found.save())
    receive = consumer.receive(count * (LARGE_BATCH - 1))
    await found.measure(f"what is left of {count:,} of the largest is delivered", receive)
    await found.delete()


GROUPS = (
    *(partial(behind_a_hole, kind) for kind in (Exclusive, Shared, Key_Shared)),
    skipped_over,
    cumulatively,
    *(
        partial(in_part, what)
        for what in ("skipped", "by one ACK", "one by one", "sought", "deleted")
    ),
    in_large_parts,
)
