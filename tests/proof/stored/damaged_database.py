"""A message database damaged while unused: no altered payload reaches a consumer.

A broker writes four topics to a database, and is stopped, or killed so that much data is in the
write-ahead log. Copies of these files are damaged in many ways. A broker started on each copy
serves the undamaged entries, or reports the damage and the remedy in a sentence. If entries are
missing, it is restarted on the same damage with floodgateMessageStoreDropDamaged=true; then every
entry must arrive that SQLite alone can read from the same files.
"""

import asyncio
import os
import re
import secrets
import shutil
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from loadgen.places.server_process import ServerLaunch, ServerStartError, running_server
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.proof.servers import LOCAL
from tests.proof.stored.damages import damage
from tests.proof.stored.numbered import content, number_of, publish, read
from tests.proof.stored.written_database import NAME, Written

CASES, QUICK_CASES = 50, 4
TOPICS = [f"persistent://public/default/{name}" for name in ("one", "two", "three", "four")]
MESSAGES, QUICK_MESSAGES = 700, 100
"""In each topic; half are written before a clean stop."""
LEDGER_ENTRIES = 100
QUIET_SECONDS = 1.5
"""A broker that cannot read an entry retries every second."""
OWED_SECONDS = 10.0
"""Wait for undamaged entries where damage may be dropped, on a busy machine too."""
SAYS_WHAT = re.compile(r"database|stored", re.IGNORECASE)
LOUD = re.compile(r"\[(warning|error|critical) ")
MOST_SHOWN = 5
_NUMBER_OR_NAME = re.compile(r"\S*\d\S*|'[^']*'|persistent\S+|/\S+")


def prove(options: ProofOptions) -> ProofResult:
    """Damage copies of two databases, and read them through a broker."""
    seed = secrets.randbelow(1 << 32)
    shutil.rmtree(options.out, ignore_errors=True)
    options.out.mkdir(parents=True)
    messages = QUICK_MESSAGES if options.quick else MESSAGES
    written = _written(options.out, messages)
    found = Found()
    for number in range(QUICK_CASES if options.quick else CASES):
        options.note(f"seed {seed}, damage {number}")
        case = Case(options.out, number, Random(f"{seed} {number}"), found)
        case.play(written[number % len(written)])
    return _judged(found, seed, messages)


@dataclass
class Found:
    """The results of all cases; sentences about failures."""

    ends: Counter[str] = field(default_factory=Counter)
    said: Counter[str] = field(default_factory=Counter)
    served: int = 0
    altered: list[str] = field(default_factory=list)
    unsaid: list[str] = field(default_factory=list)
    not_served: list[str] = field(default_factory=list)
    traces: list[str] = field(default_factory=list)
    died: list[str] = field(default_factory=list)


def _settings(database: Path, *, drops: bool = False) -> dict[str, str]:
    return {
        **LOCAL,
        "brokerServicePort": "0",
        "floodgateMessageStore": f"sqlite://{database.resolve()}",
        "floodgateMessageStoreDropDamaged": str(drops).lower(),
        "managedLedgerMaxEntriesPerLedger": str(LEDGER_ENTRIES),
    }


# -- the databases --------------------------------------------------------------------------------


def _written(out: Path, messages: int) -> list[Written]:
    """Write a database by a broker; return it after a clean stop, and after a kill."""
    folders = [out / "working", out / "stopped", out / "killed"]
    working, stopped, killed = folders
    working.mkdir()
    launch = ServerLaunch("broker", _settings(working / NAME), out / "writing.log")
    for copy, numbers in (
        (stopped, range(messages // 2)),
        (killed, range(messages // 2, messages)),
    ):
        with running_server(launch) as broker:
            asyncio.run(_publish(broker.service_url, numbers))
            if copy is killed:
                os.kill(broker.pid, signal.SIGKILL)
        shutil.copytree(working, copy)
    return [Written.in_folder(stopped), Written.in_folder(killed)]


async def _publish(url: str, numbers: range) -> None:
    receipts = await asyncio.gather(*(publish(url, topic, numbers) for topic in TOPICS))
    if set(receipts) != {len(numbers)}:
        raise ProofError(f"a broker gave {receipts} receipts for {len(numbers)} messages each")


# -- one case -------------------------------------------------------------------------------------


class Case:
    """A damage, and the brokers started on it."""

    def __init__(self, out: Path, number: int, random: Random, found: Found) -> None:
        self._out, self._number, self._random, self._found = out, number, random, found
        self._what = ""

    def play(self, written: Written) -> None:
        """Damage a copy, and start a broker on it; on the same damage another broker that drops."""
        damaged = self._out / "damaged"
        shutil.copytree(written.folder, damaged)
        how = damage(damaged / NAME, self._random)
        self._what = f"damage {self._number} ({written.folder.name}, {how})"
        whole = written.whole(damaged)
        if not self._broker(damaged, whole, written, drops=False):
            self._broker(damaged, whole, written, drops=True)
        shutil.rmtree(damaged)

    def _broker(
        self, damaged: Path, whole: dict[str, set[int]], written: Written, *, drops: bool
    ) -> bool:
        """Start a broker on a copy, and read; return whether it served everything."""
        working = self._out / "working"
        shutil.rmtree(working)
        shutil.copytree(damaged, working)
        mode = "drops" if drops else "keeps"
        log = self._out / f"broker-{self._number}-{mode}.log"
        launch = ServerLaunch("broker", _settings(working / NAME, drops=drops), log)
        found, what = self._found, f"{self._what}, {mode}"
        try:
            with running_server(launch) as broker:
                owed_seconds = OWED_SECONDS if drops else QUIET_SECONDS
                answers = asyncio.run(_all_read(broker.service_url, whole, owed_seconds))
                if os.waitid(os.P_PID, broker.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
                    found.died.append(what)
        except ServerStartError as error:
            self._refused(str(error), what, drops=drops)
            return False
        finally:
            if b"Traceback" in log.read_bytes():
                found.traces.append(what)
        said = [line for line in log.read_text().splitlines() if LOUD.search(line)]
        came = self._compare(answers, what)
        self._judge(answers, came, whole, said, what, drops=drops)
        is_complete = sum(map(len, came.values())) == len(written.rows)
        found.ends["served everything"] += is_complete
        return is_complete

    def _judge(
        self,
        answers: dict[str, list[bytes] | str],
        came: dict[str, set[int]],
        whole: dict[str, set[int]],
        said: list[str],
        what: str,
        *,
        drops: bool,
    ) -> None:
        """Judge the missing entries, and the broker's sentence about them."""
        found = self._found
        refusals = [answer for answer in answers.values() if isinstance(answer, str)]
        # A topic refused with a sentence owes no messages.
        missing = {one: whole[one] - came[one] for one in TOPICS if answers[one] not in refusals}
        left_out = sum(map(len, missing.values()))
        said = [line.partition("]")[2] for line in said if SAYS_WHAT.search(line)]
        found.said.update(map(_kind, {*said, *refusals}))
        if drops and left_out:
            counts = ", ".join(f"{len(one)} of {topic}" for topic, one in missing.items() if one)
            found.not_served.append(f"{what}: {counts}; {'; '.join(said[:2])}")
        if left_out and not said:
            found.unsaid.append(f"{what}: {left_out} entries did not come, and nothing says so")
        if refusals:
            found.ends["refused topics" + ", also if it may drop" * drops] += 1
        elif said:
            found.ends["served all that is whole" if drops else "served what is before it"] += 1

    def _refused(self, error: str, what: str, *, drops: bool) -> None:
        _, _, sentence = error.partition("did not start: ")
        if not is_sentence(sentence):
            self._found.unsaid.append(f"{what}: {error}")
        self._found.ends["refused, also if it may drop" if drops else "refused"] += 1
        self._found.said[_kind(sentence)] += 1

    def _compare(self, answers: dict[str, list[bytes] | str], what: str) -> dict[str, set[int]]:
        """Compare every payload with the published; return the received numbers."""
        came: dict[str, set[int]] = {}
        for topic, answer in answers.items():
            payloads = [] if isinstance(answer, str) else answer
            came[topic] = set()
            for payload in payloads:
                number = number_of(payload)
                if payload != content(topic, number):
                    self._found.altered.append(f"{what}: {topic} {number}")
                came[topic].add(number)
            self._found.served += len(payloads)
            if isinstance(answer, str) and not is_sentence(answer):
                self._found.unsaid.append(f"{what}: {topic}: {answer}")
        return came


async def _all_read(
    url: str, whole: dict[str, set[int]], owed_seconds: float
) -> dict[str, list[bytes] | str]:
    reads = (read(url, one, len(whole[one]), QUIET_SECONDS, owed_seconds) for one in TOPICS)
    return dict(zip(TOPICS, await asyncio.gather(*reads), strict=True))


def is_sentence(text: str) -> bool:
    """Return whether a text is a sentence about a problem and its remedy."""
    return "\n" not in text and ";" in text and SAYS_WHAT.search(text) is not None


def _kind(sentence: str) -> str:
    """Return a sentence without its names and numbers."""
    return _NUMBER_OR_NAME.sub("...", sentence).strip()


# -- the result -----------------------------------------------------------------------------------


def _judged(found: Found, seed: int, messages: int) -> ProofResult:
    result = ProofResult()
    result.figures.update(
        seed=seed,
        messages=messages * len(TOPICS),
        served=found.served,
        ends=dict(found.ends),
        said=dict(found.said.most_common()),
    )
    ends = ", ".join(f"{count} {end}" for end, count in found.ends.most_common())
    for name, wrong, right in (
        ("nothing is altered", found.altered, f"{found.served:,} payloads came as published"),
        ("whole entries are served", found.not_served, "all that is whole came where it may drop"),
        ("a sentence says it", found.unsaid, f"seed {seed}: {ends}"),
        ("no traces", found.traces, "no traceback in a log"),
        ("nobody died", found.died, "every broker that started lived to its end"),
    ):
        shown = "; ".join(wrong[:MOST_SHOWN])
        result.check(name, not wrong, f"{name}: {len(wrong)} wrong: {shown}" if wrong else right)
    return result
