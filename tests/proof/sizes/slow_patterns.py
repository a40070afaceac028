"""Four clients list with patterns that never end, beside clients that list and send PINGs.

Only a backtracking engine can compile such a pattern, and only its time limit ends it.
"""

import asyncio
import statistics
import time
from pathlib import Path

import proto.PulsarApi_pb2 as pb
from benchmarks.controlled_process import ControlledProcess, controlled_process
from benchmarks.listings.corpus import NAMESPACE, listing_names, write_text_file
from loadgen.places.server_process import ServerLaunch, ServerProcess, running_server
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.servers import LOCAL, check_logs
from tests.support.peers.raw_peer import RawPeer, topics_command

NAMES = 10_000
SLOW_PATTERN = "bench/listings/(?!zz)(x+x+)+q|bench/listings/(?!zz)(?:(?:0|0)*)*q"
SLOW_CLIENTS = 4
SLOW_SECONDS, QUICK_SLOW_SECONDS = 10.0, 3.0
PING_BOUND_MILLIS = 100
_KEYS = {
    "brokerServicePort": "0",
    "metadataStoreUrl": "memory:local",
    "floodgateProfile": "floodgate",
    "subscriptionPatternMaxLength": "200",
    **LOCAL,
}


def prove(options: ProofOptions) -> ProofResult:
    """List alone, and beside the patterns."""
    result = ProofResult()
    with (
        running_server(_launch(options.out)) as broker,
        controlled_process("tests.proof.peers.pinging", options.out / "pinging.log") as pinger,
    ):
        pinger.ask("ping", url=broker.service_url)
        asyncio.run(_prove_patience(broker, pinger, options, result))
    check_logs(options.out, result)
    return result


def _launch(folder: Path) -> ServerLaunch:
    write_text_file(folder / "names.txt", NAMES)
    imports = ("--import", str(folder / "names.txt"))
    return ServerLaunch("broker", _KEYS, folder / "broker.log", imports)


async def _prove_patience(
    broker: ServerProcess, pinger: ControlledProcess, options: ProofOptions, result: ProofResult
) -> None:
    seconds = QUICK_SLOW_SECONDS if options.quick else SLOW_SECONDS
    alone = await _listing_millis(broker, seconds)
    ends = time.monotonic() + seconds
    attackers = [asyncio.create_task(_ask_slowly(broker, ends, n)) for n in range(SLOW_CLIENTS)]
    pinger.ask("take")
    beside = await _listing_millis(broker, seconds)
    pings = pinger.ask("take")
    refused = [text for texts in await asyncio.gather(*attackers) for text in texts]
    result.figures = {
        "listing_ms_alone": statistics.median(alone),
        "listing_ms_beside": statistics.median(beside),
        "listing_ms_beside_worst": max(beside),
        "pings": pings,
        "refused": len(refused),
    }
    result.check(
        "slow patterns are refused",
        bool(refused) and all("floodgatePatternTimeoutMs" in text for text in refused),
        f"{len(refused)} evaluations were ended: {refused[0] if refused else 'none'}",
    )
    result.check(
        "others are answered meanwhile",
        options.quick or (pings["worst_ms"] <= PING_BOUND_MILLIS and len(beside) > 10),
        f"the slowest of {pings['pings']:,} PONGs came after {pings['worst_ms']:.0f} ms; a listing "
        f"took {statistics.median(beside):.1f} ms (median of {len(beside):,}), "
        f"{statistics.median(alone):.1f} ms without slow patterns",
    )


async def _ask_slowly(broker: ServerProcess, ends: float, number: int) -> list[str]:
    """List with endless patterns until the deadline; return the answers."""
    texts: list[str] = []
    async with await RawPeer.shaken_hands(broker.service_url) as peer:
        while time.monotonic() < ends:
            pattern = f"{SLOW_PATTERN}|{number}x{len(texts)}"
            await peer.send(topics_command(1, NAMESPACE, topics_pattern=pattern))
            answer = await peer.command()
            if answer.type != pb.BaseCommand.ERROR:
                raise ProofError(f"a pattern without end ended: {answer.type}")
            texts.append(answer.error.message)
    return texts


async def _listing_millis(broker: ServerProcess, seconds: float) -> list[float]:
    names = len(listing_names(NAMES))
    ends, millis = time.monotonic() + seconds, []
    async with await RawPeer.shaken_hands(broker.service_url, 1 << 20) as peer:
        while (started := time.monotonic()) < ends:
            await peer.send(topics_command(1, NAMESPACE))
            size = len(await peer.frame())
            millis.append(1_000 * (time.monotonic() - started))
            if size < 100 * names:
                raise ProofError(f"a listing of {size} bytes is not whole")
    return millis
