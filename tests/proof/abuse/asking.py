"""Attacks by requests: unread lists, watches, patterns, properties, and vanishing clients."""

import asyncio
import time

import proto.PulsarApi_pb2 as pb
from limiter.clock import LoopClock, deadline
from tests.proof.abuse.crowd import Crowd, HostilePeer, Target, paced
from tests.proof.abuse.words import Type, command, listing, ping, producer, subscribe, watch

DEAF, PIPELINED = 30, 500
VANISHING, VANISHING_A_SECOND, HOLDERS = 2_000, 350, 80
HELD = 60
"""Namespaces whose lists exceed a tenant's limit; requests for the rest are pointless."""
LONGEST_VANISHING_SECONDS = 12.0
"""Attackers are fewer when they get too little of a core."""
WATCHERS, WATCHES_A_SECOND = 20, 250
PATTERNS_A_SECOND = 100
BOMBS_A_SECOND = 100
PINGERS, PINGS_A_SECOND = 20, 20_000
SMALL_BUFFER = 4_096
HOSTILE_PATTERNS = (
    "(x+x+)+y",
    "(a|a)*b",
    "(?!z)(x+x+)+q",
    "(?!z)(?:(?:0|0)*)*q",
    "(?=(a+))a*b\\1",
    "((a{0,99}){0,99}){0,99}",
    "(.*)(.*)(.*)(.*)(.*)(.*)q",
    "(?i)\\p{L}{99}",
    "[",
    "(" * 40,
    "\\",
    "(?!x)((){9}){410}",
    "(?<=a{1,30})b",
    "(?!x)(?:a{1000}){1000}",
)


async def deaf_listings(crowd: Crowd, target: Target, seconds: float) -> None:
    """Pipeline lists and read none; closed peers reconnect immediately."""
    again: asyncio.Queue[None] = asyncio.Queue()

    async def one(number: int) -> None:
        words = b"".join(
            listing(target.namespaces[(number + each) % len(target.namespaces)], each + 1)
            for each in range(PIPELINED)
        )
        crowd.counts["listings"] += PIPELINED
        await crowd.peer(
            target.greeting + words,
            reads=False,
            on_closed=lambda: again.put_nowait(None),
            buffer_bytes=SMALL_BUFFER,
        )

    for number in range(target.number(DEAF)):
        await one(number)
    ends = time.monotonic() + seconds
    while (left := ends - time.monotonic()) > 0:
        try:
            async with deadline(LoopClock(), left):
                await again.get()
        except TimeoutError:
            break
        await one(crowd.counts["opened"])


async def vanish_while_queued(crowd: Crowd, target: Target, seconds: float) -> None:
    """Hold a tenant's whole capacity, then queue requests and vanish, so many times."""
    held, wanted = target.namespaces[:HELD], target.namespaces[HELD:]
    async with Crowd(target.binary) as holders:

        async def hold(number: int) -> None:
            words = target.greeting
            for each in range(4):
                words += listing(held[(number + 15 * each) % len(held)], each + 1)
            await holders.peer(words, reads=False, buffer_bytes=SMALL_BUFFER)

        for number in range(target.number(HOLDERS)):
            await hold(number)
        waiting: list[HostilePeer] = []
        started = time.monotonic()
        most = target.number(VANISHING)
        async for number in paced(VANISHING_A_SECOND, most, LONGEST_VANISHING_SECONDS):
            peer = await crowd.peer(
                target.greeting + listing(wanted[number % len(wanted)], 1),
                reads=False,
                buffer_bytes=SMALL_BUFFER,
            )
            if peer is not None:
                waiting.append(peer)
            if len(waiting) > 100:
                crowd.forget(waiting.pop(0))
            if number % 100 == 0:
                await _hold_again(holders, hold)
        crowd.counts["seconds"] = round(time.monotonic() - started)


async def _hold_again(holders: Crowd, hold: object) -> None:
    gone = [peer for peer in holders.peers if peer.left]
    for number, peer in enumerate(gone):
        holders.forget(peer)
        await hold(number)  # type: ignore[operator]


async def watch_flood(crowd: Crowd, target: Target, seconds: float) -> None:
    """Watch with ever new patterns, read nothing, and never close a watch."""
    for number in range(target.number(WATCHERS)):
        reads = number % 2 == 0
        await crowd.peer(target.messaging_greeting, reads=reads, buffer_bytes=SMALL_BUFFER)
    watchers = list(crowd.peers)
    async for number in paced(target.number(WATCHES_A_SECOND), seconds=seconds):
        namespace = target.namespaces[number % len(target.namespaces)]
        peer = watchers[number % len(watchers)]
        peer.say(watch(namespace, number + 1, f"persistent://{namespace}/.*{number % 997}.*"))
        crowd.counts["watches"] += 1


async def hostile_patterns(crowd: Crowd, target: Target, seconds: float) -> None:
    """List and watch with distinct patterns that never end, explode, or are invalid."""

    def answered(_: HostilePeer, data: bytes) -> None:
        timed_out = data.count(b"floodgatePatternTimeoutMs")
        crowd.counts["refused with floodgatePatternTimeoutMs"] += timed_out

    made = [await crowd.peer(target.greeting, on_data=answered) for _ in range(15)]
    watching = [await crowd.peer(target.messaging_greeting, on_data=answered) for _ in range(5)]
    async for number in paced(target.number(PATTERNS_A_SECOND), seconds=seconds):
        namespace = target.namespaces[number % len(target.namespaces)]
        pattern = f"{HOSTILE_PATTERNS[number % len(HOSTILE_PATTERNS)]}|{number}"
        if number % 4:
            asked = listing(namespace, number + 1, topics_pattern=pattern)
            peer = made[number % 15]
        else:
            asked, peer = watch(namespace, number + 1, pattern), watching[number % 5]
        if peer is not None:
            peer.say(asked)
            crowd.counts["patterns"] += 1


async def property_bombs(crowd: Crowd, target: Target, seconds: float) -> None:
    """Send commands with many, long, nested or equal properties."""
    many = [pb.KeyValue(key=f"k{number}", value="v") for number in range(3_000)]
    more = [pb.KeyValue(key="k", value="") for _ in range(12_000)]
    long = [pb.KeyValue(key="k" * 20_000, value="ä" * 20_000)]
    topic = "persistent://hostile/ns-0/bombed"
    questions = [listing(target.namespaces[0], 1, properties=each) for each in (many, more, long)]
    asked = pb.CommandLookupTopic(topic=topic, request_id=1, properties=more)
    questions.append(command(Type.LOOKUP, lookupTopic=asked))
    claims = [subscribe(topic, 1, "s", metadata=each) for each in (many, more, long)]
    claims += [producer(topic, 1, metadata=each) for each in (many, more, long)]
    claims.append(subscribe(topic, 1, "s", subscription_properties=more))
    bombs = [target.greeting + each for each in questions]
    bombs += [target.messaging_greeting + each for each in claims]
    async for number in paced(target.number(BOMBS_A_SECOND), seconds=seconds):
        bomb = bombs[number % len(bombs)]
        crowd.counts["bytes of bombs"] += len(bomb)
        await crowd.peer(bomb)
        if len(crowd.peers) > 100:
            crowd.forget(next(iter(crowd.peers)))


async def ping_flood(crowd: Crowd, target: Target, seconds: float) -> None:
    """Send PINGs and read no PONG."""
    at_once = target.number(PINGS_A_SECOND) // PINGERS // 10
    pings = ping() * at_once
    for _ in range(PINGERS):
        await crowd.peer(target.greeting, reads=False, buffer_bytes=SMALL_BUFFER)
    async for _ in paced(10, seconds=seconds):
        for peer in crowd.peers:
            if not peer.left and peer.unsent_bytes < 10 * len(pings):
                peer.say(pings)
                crowd.counts["pings"] += at_once
