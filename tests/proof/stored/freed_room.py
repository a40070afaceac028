"""Acknowledged messages free their storage: it stays flat whatever passes through.

Twenty times the bound passes through ten topics, in rotation, and is acknowledged; then two thirds
of the bound pass through one topic, and through a second topic. In memory and in a database, in
both profiles. No message may be refused.
"""

import asyncio
import shutil
from pathlib import Path

from loadgen.places.server_process import ServerLaunch, ServerProcess, running_server
from tests.proof.process_memory import peak_resident_bytes
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import LOCAL, check_logs, samples, server_address
from tests.proof.stored.passing import pass_through

MEBIBYTE = 1024 * 1024
TOPICS, TIMES = 10, 20
BOUND_MIB, QUICK_BOUND_MIB = 50, 10
ENTRY_BYTES = 16 * 1024
TWO_BOUND_MIB = 300
MESSAGES, QUICK_MESSAGES = 200_000, 5_000
MESSAGE_BYTES = 1024
FLAT_SHARE = 1.1
FILE_BOUNDS = 3
"""Maximum size of the database, with its write-ahead log, in bounds, and of its log once more."""
LOG_MIB = 64


def prove(options: ProofOptions) -> ProofResult:
    """Pass messages through brokers of each kind."""
    result = ProofResult()
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    for profile in ("floodgate", "pulsar"):
        for store in ("memory", "SQLite"):
            name = f"{store}, profile {profile}"
            options.note(f"{name}: {TIMES} times the bound through {TOPICS} topics")
            _ten_topics(options, name, _settings(options.out, name), result)
            options.note(f"{name}: two topics")
            _two_topics(options, name, _settings(options.out, name), result)
    check_logs(options.out, result)
    return result


def _settings(out: Path, name: str) -> dict[str, str]:
    for left in out.glob("messages.db*"):
        left.unlink()
    in_file = f"sqlite://{(out / 'messages.db').resolve()}"
    return {
        **LOCAL,
        "brokerServicePort": "0",
        "floodgateProfile": name.rpartition(" ")[2],
        "floodgateMessageStore": in_file if name.startswith("SQLite") else "memory",
    }


def _ten_topics(
    options: ProofOptions, name: str, settings: dict[str, str], result: ProofResult
) -> None:
    bound = QUICK_BOUND_MIB if options.quick else BOUND_MIB
    settings["floodgateMessageStoreMaxMB"] = str(bound)
    launch = ServerLaunch("broker", settings, options.out / f"{name}, ten.log")
    # So that a topic gets a fifth of the bound at a time, with space left for the rest.
    entries, passes = bound * MEBIBYTE // ENTRY_BYTES // 5, 5 * TIMES
    stored: list[float] = []
    files: list[float] = []
    with running_server(launch) as broker:
        for number in range(passes):
            topic = f"persistent://public/default/t{number % TOPICS}"
            if not asyncio.run(pass_through(server_address(broker), topic, entries, ENTRY_BYTES)):
                break
            found = samples(broker)
            stored.append(found["floodgate_message_store_bytes"] / MEBIBYTE)
            files.append(found.get("floodgate_message_database_file_bytes", 0) / MEBIBYTE)
        resident = peak_resident_bytes(broker.pid) / MEBIBYTE
    half = max(stored[: passes // 2], default=0), max(stored[passes // 2 :], default=0)
    most_file = max(files, default=0)
    result.figures[f"{name}, ten topics"] = {
        "passes": len(stored),
        "most_stored_mib": [round(one, 1) for one in half],
        "most_file_mib": round(most_file, 1),
        "resident_mib": round(resident),
    }
    flat = len(stored) == passes and max(half) <= bound and half[1] <= FLAT_SHARE * half[0]
    result.check(
        f"{name}: ten topics",
        flat and most_file <= FILE_BOUNDS * bound + LOG_MIB,
        f"{name}: {len(stored)} of {passes} times a fifth of {bound} MiB passed through {TOPICS} "
        f"topics; at most {half[0]:.0f} MiB were stored in the first half and {half[1]:.0f} in the "
        f"second; the file took {most_file:.0f} MiB, the broker {resident:.0f} MiB of memory",
    )


def _two_topics(
    options: ProofOptions, name: str, settings: dict[str, str], result: ProofResult
) -> None:
    settings["floodgateMessageStoreMaxMB"] = str(TWO_BOUND_MIB)
    launch = ServerLaunch("broker", settings, options.out / f"{name}, two.log")
    messages = QUICK_MESSAGES if options.quick else MESSAGES
    with running_server(launch) as broker:
        passed = [
            asyncio.run(pass_through(server_address(broker), topic, messages, MESSAGE_BYTES))
            for topic in ("persistent://public/default/one", "persistent://public/default/two")
        ]
        refused = _refused(broker)
    result.check(
        f"{name}: two topics",
        all(passed) and not refused,
        f"{name}: {messages:,} messages of 1 KiB with {TWO_BOUND_MIB} MiB at most passed through "
        f"the first topic: {passed[0]}; through the second: {passed[1]}; {refused:.0f} refused",
    )


def _refused(broker: ServerProcess) -> float:
    found = samples(broker)
    return next((v for k, v in found.items() if k.startswith("floodgate_message_store_refused")), 0)
