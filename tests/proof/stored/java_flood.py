"""The official Java client sends at full speed to a subscription that does not read.

The broker has no settings except addresses, as a new user's. It may not refuse after a gigabyte, as
a broker with messages in memory does, and its memory must not grow with the stored messages.
"""

import json
import subprocess
import tempfile
import time

from loadgen.places.server_process import ServerLaunch, ServerProcess, running_server
from tests.official.clients import ClientMissingError, java_client
from tests.proof.process_memory import resident_bytes
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import LOCAL, check_logs, samples

MEBIBYTE = 1024 * 1024
MIB, QUICK_MIB = 2_500, 200
TOPIC = "persistent://public/default/flood"
LOOK_SECONDS = 0.5
MOST_GROWTH_MIB = 64
"""The broker's growth from a fifth stored to the end."""
PATIENCE_SECONDS = 900
_QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"


def prove(options: ProofOptions) -> ProofResult:
    """Flood a broker without any setting."""
    result = ProofResult()
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        java, *arguments, _ = java_client().command
    except ClientMissingError as error:
        result.check("skipped", True, f"skipped: {error}")
        return result
    mib = QUICK_MIB if options.quick else MIB
    settings = {**LOCAL, "brokerServicePort": "0"}
    launch = ServerLaunch("broker", settings, options.out / "broker.log")
    with running_server(launch) as broker, tempfile.TemporaryFile("w+") as said:
        words = [java, _QUIET, *arguments, "Flood", broker.service_url, TOPIC, str(mib)]
        client = subprocess.Popen(words, stdout=said, stderr=(options.out / "java.log").open("wb"))
        try:
            looks = _looked_at(broker, client, options)
        finally:
            client.kill()
            client.wait()
        said.seek(0)
        found = json.loads(said.read() or '{"failed": "the client did not end", "receipted": 0}')
        page = samples(broker)
    _judge(result, found, looks, mib, page["floodgate_message_store_limit_bytes"])
    check_logs(options.out, result)
    return result


def _looked_at(
    broker: ServerProcess, client: subprocess.Popen[bytes], options: ProofOptions
) -> list[tuple[float, float]]:
    """Return the stored size and the broker's memory, both in MiB, until the client has ended."""
    looks: list[tuple[float, float]] = []
    end = time.monotonic() + PATIENCE_SECONDS
    while client.poll() is None and time.monotonic() < end:
        stored = samples(broker)["floodgate_message_store_bytes"] / MEBIBYTE
        looks.append((stored, resident_bytes(broker.pid) / MEBIBYTE))
        options.note(f"{looks[-1][0]:,.0f} MiB stored, {looks[-1][1]:,.0f} MiB of memory")
        time.sleep(LOOK_SECONDS)
    return looks


def _judge(
    result: ProofResult,
    found: dict[str, object],
    looks: list[tuple[float, float]],
    mib: int,
    bound_bytes: float,
) -> None:
    early = max((memory for stored, memory in looks if stored <= mib / 5), default=0.0)
    most = max((memory for _, memory in looks), default=0.0)
    messages = mib * MEBIBYTE // 1024
    result.figures.update(
        found,
        mib_of_payload=mib,
        most_stored_mib=round(max((stored for stored, _ in looks), default=0)),
        memory_at_a_fifth_mib=round(early),
        most_memory_mib=round(most),
        bound_mib=round(bound_bytes / MEBIBYTE),
    )
    result.check(
        "nothing is refused",
        found["receipted"] == messages and not found["failed"],
        f"{found['receipted']:,} of {messages:,} messages of 1 KiB had a receipt after "
        f"{found.get('seconds', 0):.0f} s; bound {bound_bytes / MEBIBYTE:,.0f} MiB"
        + (f"; {found['failed']}" if found["failed"] else ""),
    )
    result.check(
        "memory stays",
        most - early <= MOST_GROWTH_MIB,
        f"the broker took {early:.0f} MiB while a fifth was stored, and {most:.0f} MiB at most",
    )
