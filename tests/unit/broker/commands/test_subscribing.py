"""Which connections are probed for liveness before a newcomer is refused."""

from __future__ import annotations

import pytest

import proto.PulsarApi_pb2 as pb
from broker.commands.subscribing import check_subscribe, displace_dead, options_of
from broker.messages.subscriptions.consumer import SubType
from server.connection.request_errors import RequestError
from tests.support.messages.consumers import consume, subscribed_topic

EXCLUSIVE, SHARED = pb.CommandSubscribe.Exclusive, pb.CommandSubscribe.Shared
KEY_SHARED = pb.CommandSubscribe.Key_Shared


def sticky(first: int, last: int) -> pb.KeySharedMeta:
    """Return a STICKY consumer's request."""
    return pb.KeySharedMeta(
        keySharedMode=pb.STICKY, hashRanges=[pb.IntRange(start=first, end=last)]
    )


@pytest.mark.parametrize(
    ("has", "ranges", "wants", "wanted", "asked"),
    [
        (EXCLUSIVE, None, EXCLUSIVE, None, 1),
        (EXCLUSIVE, None, SHARED, None, 0),
        (SHARED, None, SHARED, None, 0),
        (KEY_SHARED, None, KEY_SHARED, None, 0),
        (KEY_SHARED, sticky(0, 9), KEY_SHARED, sticky(9, 20), 1),
        (KEY_SHARED, sticky(0, 9), KEY_SHARED, sticky(10, 20), 0),
        (KEY_SHARED, sticky(0, 9), KEY_SHARED, None, 0),
        (KEY_SHARED, None, KEY_SHARED, sticky(0, 9), 0),
        (KEY_SHARED, sticky(0, 9), EXCLUSIVE, None, 0),
    ],
)
async def test_only_a_consumer_that_conflicts_with_the_newcomer_is_pinged(
    has: SubType.ValueType,
    ranges: pb.KeySharedMeta | None,
    wants: SubType.ValueType,
    wanted: pb.KeySharedMeta | None,
    asked: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, subscription = await subscribed_topic()
    _, cnx = consume(subscription, has, key_shared=ranges)
    pings = []

    async def answers_ping() -> bool:
        pings.append(cnx)
        return True

    monkeypatch.setattr(cnx, "answers_ping", answers_ping)
    newcomer = pb.CommandSubscribe(subType=wants, keySharedMeta=wanted)
    await displace_dead(subscription, newcomer)
    assert len(pings) == asked


def test_only_a_persistent_topic_requires_a_subscription_name() -> None:
    check_subscribe(pb.CommandSubscribe(topic="non-persistent://t/n/x"))
    with pytest.raises(RequestError):
        check_subscribe(pb.CommandSubscribe(topic="persistent://t/n/x"))


@pytest.mark.parametrize(("domain", "epoch"), [("persistent", 3), ("non-persistent", -1)])
def test_the_consumer_epoch_counts_only_on_a_persistent_topic(domain: str, epoch: int) -> None:
    asked = pb.CommandSubscribe(topic=f"{domain}://t/n/x", subType=EXCLUSIVE, consumer_epoch=3)
    assert options_of(asked).epoch == epoch


def test_a_compacted_read_of_a_non_persistent_topic_is_refused() -> None:
    asked = pb.CommandSubscribe(
        topic="non-persistent://t/n/x", subscription="s", subType=EXCLUSIVE, read_compacted=True
    )
    with pytest.raises(RequestError, match="only valid on persistent topics") as refused:
        check_subscribe(asked)
    assert refused.value.server_error == pb.NotAllowedError


def test_a_reserved_subscription_name_is_allowed_only_on_a_non_persistent_topic() -> None:
    for name in ("pulsar.dedup", "pulsar.repl"):
        asked = pb.CommandSubscribe(topic="persistent://public/default/t", subscription=name)
        with pytest.raises(RequestError) as refused:
            check_subscribe(asked)
        assert refused.value.server_error == pb.ProducerBusy
        asked.topic = "non-persistent://public/default/t"
        check_subscribe(asked)


BLANK = ("", " ", "\t", "\n", "\v", "\x1c", "\x1f", "\u1680", "\u2028", "\u205f", "\u3000", " \t ")
NAMES = ("\0", "\x85", "\xa0", "\u2007", "\u200b", "\ufeff", " a ")


@pytest.mark.parametrize("name", BLANK)
def test_a_subscription_name_that_java_calls_blank_is_refused_as_empty(name: str) -> None:
    with pytest.raises(RequestError, match="Empty subscription name"):
        check_subscribe(pb.CommandSubscribe(topic="persistent://t/n/x", subscription=name))


@pytest.mark.parametrize("name", NAMES)
def test_a_subscription_name_that_java_does_not_call_blank_is_accepted(name: str) -> None:
    check_subscribe(pb.CommandSubscribe(topic="persistent://t/n/x", subscription=name))
