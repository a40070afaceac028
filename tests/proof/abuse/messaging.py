"""Attacks with messages: unfinished frames, unbounded permits, floods of names."""

import asyncio

import proto.PulsarApi_pb2 as pb
from proto.frames import encode_command
from tests.proof.abuse.crowd import Crowd, Target, paced
from tests.proof.abuse.words import (
    Type,
    announced,
    command,
    flow,
    lookup,
    producer,
    send,
    subscribe,
)

UNFINISHED = 40
UNFINISHED_BYTES, SENT_BYTES = 5_242_880, 4 * 1024 * 1024
DEAF_CONSUMERS, MESSAGES_A_SECOND = 50, 200
NAMES_A_SECOND, NAMES = 300, 1_000
PAYLOAD = b"x" * 10_000
_SEND = encode_command(
    pb.BaseCommand(type=Type.SEND, send=pb.CommandSend(producer_id=1, sequence_id=1))
)[8:]


async def unfinished_frames(crowd: Crowd, target: Target, seconds: float) -> None:
    """Announce a message of 5 MB, send 4 MB, and stop."""
    words = announced(UNFINISHED_BYTES, len(_SEND), _SEND) + bytes(SENT_BYTES)
    number = target.number(UNFINISHED)
    await crowd.gather(number, number / (seconds / 2), target.messaging_greeting + words)
    await asyncio.sleep(seconds / 2)
    crowd.counts["open at the end"] = sum(not peer.left for peer in crowd.peers)


async def deaf_consumers(crowd: Crowd, target: Target, seconds: float) -> None:
    """Grant 2**31 permits and read nothing; publish, claim absurd batches, acknowledge nonsense."""
    topic = f"persistent://hostile/ns-0/deaf-{target.role}"
    nonsense = pb.CommandAck(consumer_id=1, ack_type=pb.CommandAck.Individual)
    for entry in range(900):
        nonsense.message_id.add(ledgerId=2**63, entryId=entry, ack_set=[-1, 0, 1])
    for number in range(target.number(DEAF_CONSUMERS)):
        words = target.messaging_greeting + subscribe(topic, 1, f"s{number % 5}") + flow(1, 2**31)
        words += command(Type.ACK, ack=nonsense) + flow(1, 2**32 - 1) * 100
        await crowd.peer(words, reads=False, buffer_bytes=4_096)
    greeting = target.messaging_greeting + producer(topic, 1)
    publisher = await crowd.peer(greeting)
    async for number in paced(target.number(MESSAGES_A_SECOND), seconds=seconds):
        if publisher is not None and publisher.unsent_bytes < 1_000_000:
            publisher.say(send(1, number, PAYLOAD))
            crowd.counts["messages"] += 1
        if number % 20 == 0:
            await crowd.peer(greeting + send(1, 0, PAYLOAD, 2**31 - 1))


async def name_flood(crowd: Crowd, target: Target, seconds: float) -> None:
    """Look up, create and subscribe to ever new names of topics, tenants and subscriptions."""
    for _ in range(10):
        await crowd.peer(target.messaging_greeting)
    peers = list(crowd.peers)
    async for number in paced(target.number(NAMES_A_SECOND), seconds=seconds):
        name = number % NAMES
        topic = f"persistent://hostile/flood/t-{name}"
        words = (
            lookup(f"persistent://nobody-{name}/ns/t", number + 1),
            lookup(f"persistent://hostile/flood/{'n' * 200}-{name}", number + 1),
            producer(topic, number + 1),
            subscribe(topic, number + 1, f"s-{name}-{'n' * 200}"),
        )
        peers[number % len(peers)].say(words[number % len(words)])
        crowd.counts["names"] += 1
