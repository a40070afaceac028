"""All attacks: each a function ``(crowd, target, seconds)`` and a row here.

HTTP attacks come first, so that the proxy's connections to its broker have ended by the end of a
round.
"""

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from tests.proof.abuse import asking, connecting, messaging, web
from tests.proof.abuse.crowd import Crowd, Target


@dataclass(frozen=True)
class Attack:
    """An attack.

    Attributes:
        title: The action, with its rate for each server.
        act: Opens the connections of a crowd at a target, for a number of seconds.
        seconds: Its duration.
        only: The only role to attack; empty for both.
        port: The attacked port, by its name in :class:`Target`.
    """

    title: str
    act: Callable[[Crowd, Target, float], Awaitable[None]]
    seconds: float = 3.5
    only: str = ""
    port: str = "binary"

    async def run(self, target: Target, seconds: float) -> Counter[str]:
        """Attack a target; return the counts of the attack's connections."""
        async with Crowd(getattr(target, self.port)) as crowd:
            await self.act(crowd, target, seconds)
        return crowd.counts


ATTACKS = {
    "idle_http": Attack(
        f"{web.IDLE:,} HTTP connections that ask once or never, {web.IDLE_A_SECOND:,} a second",
        web.idle_http,
        port="web",
    ),
    "slow_http": Attack(
        f"{web.SLOW} HTTP requests of which one byte comes a second", web.slow_http, port="web"
    ),
    "huge_http": Attack(
        f"{web.HUGE_A_SECOND} HTTP requests a second with huge heads, bodies that unpack to 64 MB, "
        "deep and wide JSON",
        web.huge_http,
        port="web",
    ),
    "deaf_http": Attack(
        f"{web.DEAF} HTTP connections that ask for {2 * web.PIPELINED} pages at once, read none",
        web.deaf_http,
        port="web",
    ),
    "request_flood": Attack(
        f"{web.REQUESTS_A_SECOND} HTTP requests a second", web.request_flood, port="web"
    ),
    "half_open": Attack(
        f"{connecting.HALF_OPEN_A_SECOND} connections a second that never say CONNECT",
        connecting.half_open,
    ),
    "trickle": Attack(
        f"{connecting.TRICKLING} connections that say one byte a second", connecting.trickle
    ),
    "silent": Attack(
        f"{connecting.SILENT:,} connections that say CONNECT and then nothing, "
        f"{connecting.SILENT_A_SECOND:,} a second",
        connecting.silent,
        21.0,
    ),
    "half_handshakes": Attack(
        f"{connecting.HANDSHAKES_A_SECOND} TLS handshakes a second that stop half way",
        connecting.half_handshakes,
    ),
    "bad_tokens": Attack(
        f"{connecting.TOKENS_A_SECOND} connections a second with wrong, expired, broken tokens",
        connecting.bad_tokens,
    ),
    "garbage": Attack(
        f"{connecting.GARBAGE_A_SECOND} connections a second that say no frame, to all ports",
        connecting.garbage,
    ),
    "huge_frames": Attack(
        f"{connecting.HUGE_A_SECOND} connections a second that announce 2 to 4 GB",
        connecting.huge_frames,
    ),
    "unfinished_frames": Attack(
        f"{messaging.UNFINISHED} connections that send 4 MB of a message of 5 MB and stop",
        messaging.unfinished_frames,
    ),
    "tunnels": Attack(
        f"{connecting.TUNNELS_A_SECOND} tunnels a second to places that are not there",
        connecting.tunnels,
        only="proxy",
    ),
    "deaf_listings": Attack(
        f"{asking.DEAF} connections that ask for {asking.PIPELINED} lists at once and read none; "
        "who is closed comes again at once",
        asking.deaf_listings,
    ),
    "vanish_while_queued": Attack(
        f"{asking.VANISHING:,} clients that ask and vanish in the queue, "
        f"{asking.VANISHING_A_SECOND} a second, while {asking.HOLDERS} hold all there is",
        asking.vanish_while_queued,
    ),
    "watch_flood": Attack(
        f"{asking.WATCHES_A_SECOND:,} watches a second with other patterns, never closed; "
        "half of the watchers read nothing",
        asking.watch_flood,
    ),
    "hostile_patterns": Attack(
        f"{asking.PATTERNS_A_SECOND} patterns a second that never end, explode or are none",
        asking.hostile_patterns,
    ),
    "property_bombs": Attack(
        f"{asking.BOMBS_A_SECOND} commands a second with 3,000 or 12,000 properties, or long ones",
        asking.property_bombs,
    ),
    "ping_flood": Attack(
        f"{asking.PINGS_A_SECOND:,} PINGs a second, no PONG read, on {asking.PINGERS} connections",
        asking.ping_flood,
    ),
    "deaf_consumers": Attack(
        f"{messaging.DEAF_CONSUMERS} consumers that ask for 2**31 messages and read none, "
        f"{messaging.MESSAGES_A_SECOND} messages a second of 10 kB, absurd batches, false ACKs",
        messaging.deaf_consumers,
    ),
    "name_flood": Attack(
        f"{messaging.NAMES_A_SECOND} lookups, producers and subscriptions a second, other names",
        messaging.name_flood,
    ),
}
