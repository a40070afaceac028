"""Messages through the pipe: large in both directions, with slow readers on either side."""

import asyncio

import pytest

from limiter.flow.causes import PauseCause
from tests.support.peers.message_peer import MessagePeer
from tests.support.processes.cluster import Cluster, cluster, until

TOPIC = "persistent://public/default/large"
SIZE, COUNT = 1_000_000, 24
PROFILES = ["pulsar", "floodgate"]
SMALL_BUFFERS = {"floodgateSocketSendBufferBytes": "65536"}
BOUND_BYTES = 2 * SIZE
"""The proxy's limit for 24 MB: its legs' watermarks, and the excess above."""


def payload(number: int) -> bytes:
    return b"%08d" % number + b"x" * (SIZE - 8)


async def through(parts: Cluster, receive_buffer_bytes: int = 65_536) -> MessagePeer:
    """Look the topic up at the proxy and connect to its broker through the pipe."""
    url = parts.proxy.service_url
    asking = await MessagePeer.connect(url)
    found = await asking.lookup(TOPIC)
    asking.close()
    target = found.brokerServiceUrl.removeprefix("pulsar://")
    return await MessagePeer.connect(url, target, receive_buffer_bytes)


async def published(parts: Cluster, count: int) -> None:
    """Publish through the proxy, and take the receipts."""
    peer = await through(parts)
    await peer.producer(TOPIC)
    for number in range(count):
        await peer.publish(number, payload(number))
        await peer.receipt()
    peer.close()


@pytest.mark.parametrize("profile", PROFILES)
async def test_large_messages_pass_simultaneously_in_both_directions(profile: str) -> None:
    async with cluster(profile=profile, proxy=SMALL_BUFFERS) as parts:
        peer = await through(parts)
        await peer.subscribe(TOPIC)
        await peer.flow(2 * COUNT)
        await peer.producer(TOPIC)

        async def send() -> None:
            for number in range(COUNT):
                await peer.publish(number, payload(number))

        # One connection publishes and consumes
        async with asyncio.TaskGroup() as group:
            group.create_task(send())
            found = [(await peer.message()).payload for _ in range(COUNT)]
        assert found == [payload(number) for number in range(COUNT)]
        assert parts.proxy.totals.peak_bytes < BOUND_BYTES
        peer.close()


@pytest.mark.parametrize("profile", PROFILES)
async def test_a_consumer_that_does_not_read_is_paused_and_delays_no_other(profile: str) -> None:
    both = {"pulsarChannelPauseReceivingRequestsIfUnwritable": "true"}
    async with cluster(profile=profile, both=both, proxy=SMALL_BUFFERS) as parts:
        await published(parts, COUNT)
        slow, quick = await through(parts, 4_096), await through(parts)
        await slow.subscribe(TOPIC, "slow")
        await quick.subscribe(TOPIC, "quick")
        # A non-reading peer with a backlog
        await slow.flow(COUNT)
        (leg,) = [one for one in parts.proxy.connections if one.peer == slow.raw.address]
        await until(lambda: leg.other.gate.is_closed_for(PauseCause.PEER_LEG_FULL))
        # Another peer gets everything
        await quick.flow(COUNT)
        found = [(await quick.message()).payload[:8] for _ in range(COUNT)]
        assert found == [payload(number)[:8] for number in range(COUNT)]
        assert parts.proxy.totals.peak_bytes < BOUND_BYTES
        # It reads at last
        late = [(await slow.message()).payload[:8] for _ in range(COUNT)]
        assert late == found
        slow.close()
        quick.close()


async def test_a_producer_is_paused_while_its_broker_does_not_read() -> None:
    async with cluster(proxy=SMALL_BUFFERS) as parts:
        peer = await through(parts)
        await peer.producer(TOPIC)
        (leg,) = [one for one in parts.proxy.connections if one.peer == peer.raw.address]
        (far,) = [one for one in parts.broker.connections if one.producers]
        far.gate.close_for(PauseCause.CONNECTING_TO_BROKER)
        sending = asyncio.create_task(_send(peer))
        await until(lambda: leg.gate.is_closed_for(PauseCause.PEER_LEG_FULL))
        assert not sending.done()
        assert parts.proxy.totals.peak_bytes < BOUND_BYTES
        far.gate.open_for(PauseCause.CONNECTING_TO_BROKER)
        receipts = [(await peer.receipt()).send_receipt.sequence_id for _ in range(COUNT)]
        assert receipts == list(range(COUNT))
        await sending
        peer.close()


async def _send(peer: MessagePeer) -> None:
    for number in range(COUNT):
        await peer.publish(number, payload(number))
