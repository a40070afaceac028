"""A non-reading watcher alone is charged for its pending updates."""

from limiter.memory.dual_limiter import LimitType
from tests.support.processes.cluster import cluster, until
from tests.support.watches.wire_watches import TOPICS, change, watch, watching

DIRECT = LimitType.DIRECT_MEMORY
NAMES = [f"persistent://public/gold/alpha-{number:04d}".ljust(150, "x") for number in range(200)]
SMALL_BUFFER = {"floodgateSocketSendBufferBytes": "4096"}


async def test_only_the_silent_watcher_holds_permits_for_a_change() -> None:
    # A set with a non-reading watcher, and twenty with a greedy watcher
    async with cluster(TOPICS, broker=SMALL_BUFFER) as parts:
        limiter = parts.broker.limiter
        silent = await watching(parts)
        sets = [watch(f"public/gold/(alpha|x{n}).*", n + 1, n + 1) for n in range(20)]
        reader = await watching(parts, *sets)
        await change(parts, NAMES)
        for _ in sets:
            await reader.command()
        # An eviction frees all held bytes, a single copy
        cnx = parts.cnx(silent, "broker")
        await until(lambda: limiter.acquired_permits(DIRECT) < 40_000)
        assert 0 < limiter.pinned_by(cnx)[DIRECT] == limiter.acquired_permits(DIRECT)
