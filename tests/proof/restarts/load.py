"""Official Python clients under load, as a separate process; reports its calls as JSON.

``python -m tests.proof.restarts.load FOLDER WAY=URL ...``. Each way has topics with a producer and
a consumer of each type, a pattern consumer, a consumer that subscribes to a pattern repeatedly, and
a client that requests partitions. Timeouts are the client's defaults. A line on standard input ends
the producing; the process ends when every receipted message has arrived, or no more follow.
"""

import json
import os
import re
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulsar

TOPICS = 3
"""Of each way."""
PAUSE_SECONDS = 0.02
LISTING_PAUSE_SECONDS = 0.02
LISTERS = 3
"""Of each way; so that a listing is always in flight."""
RECEIVE_MILLIS = 500
QUIET_SECONDS = 30.0
TYPES = {
    "exclusive": pulsar.ConsumerType.Exclusive,
    "shared": pulsar.ConsumerType.Shared,
    "failover": pulsar.ConsumerType.Failover,
    "key_shared": pulsar.ConsumerType.KeyShared,
}
STARTED = "started"


class Calls:
    """The calls of an application: number of each kind, the longest, and failures."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.counts: dict[str, int] = defaultdict(int)
        self.longest: dict[str, float] = defaultdict(float)
        self.failures: list[str] = []

    def do(self, kind: str, call: Callable[[], Any]) -> tuple[bool, Any]:
        """Call; return the success and the result."""
        begun = time.monotonic()
        try:
            found, worked = call(), True
        except pulsar.PulsarException as error:
            found, worked = None, False
            failure = f"{kind}: {type(error).__name__} after {time.monotonic() - begun:.1f} s"
            with self._lock:
                self.failures.append(failure)
        self.note(kind, time.monotonic() - begun)
        return worked, found

    def note(self, kind: str, seconds: float) -> None:
        """Note a call, or a pause between two messages."""
        with self._lock:
            self.counts[kind] += 1
            self.longest[kind] = max(self.longest[kind], seconds)


class Way:
    def __init__(self, name: str, url: str, folder: Path, calls: Calls) -> None:
        log = pulsar.FileLogger(pulsar.LoggerLevel.Info, str(folder / f"client-{name}.log"))
        self.name = name
        self.calls = calls
        self.client = pulsar.Client(url, logger=log)
        self.stopping = threading.Event()
        self.receipted: dict[str, set[bytes]] = defaultdict(set)
        self.received: dict[tuple[str, str], set[bytes]] = defaultdict(set)
        self.repeated = 0
        self.producing: list[threading.Thread] = []
        self.consuming: list[threading.Thread] = []

    def start(self) -> None:
        """Attach all consumers, then begin."""
        topics = [f"persistent://public/default/{self.name}-{n}" for n in range(TOPICS)]
        everything = re.compile(f"persistent://public/default/{self.name}-[0-9]")
        producers = [self.client.create_producer(topic) for topic in topics]
        consumers = [
            ((topic, kind), self.client.subscribe(topic, kind, TYPES[kind]))
            for topic in topics
            for kind in TYPES
        ]
        consumers.append((("", "pattern"), self.client.subscribe(everything, "pattern")))
        for which, consumer in consumers:
            self._run(self.consuming, self._consume, which, consumer)
        for topic, producer in zip(topics, producers, strict=True):
            self._run(self.producing, self._produce, topic, producer)
        for number in range(LISTERS):
            self._run(self.producing, self._list, everything, f"again-{number}")
        self._run(self.producing, self._ask, topics)

    def _run(self, threads: list[threading.Thread], work: Callable[..., None], *given: Any) -> None:
        threads.append(threading.Thread(target=work, args=given, daemon=True))
        threads[-1].start()

    def _produce(self, topic: str, producer: Any) -> None:
        number = 0
        while not self.stopping.is_set():
            payload = f"{topic} {number}".encode()
            key = str(number % 7)
            worked, _ = self.calls.do(
                "send", lambda data=payload, key=key: producer.send(data, partition_key=key)
            )
            if worked:
                self.receipted[topic].add(payload)
            number += 1
            time.sleep(PAUSE_SECONDS)

    def _consume(self, which: tuple[str, str], consumer: Any) -> None:
        got, last = self.received[which], time.monotonic()
        while True:
            try:
                message = consumer.receive(RECEIVE_MILLIS)
            except pulsar.Timeout:
                continue
            now = time.monotonic()
            if not self.stopping.is_set():
                self.calls.note(f"between two messages, {which[1]}", now - last)
            last = now
            self.repeated += message.data() in got
            got.add(message.data())
            self.calls.do("acknowledge", lambda one=message: consumer.acknowledge(one))

    def _list(self, everything: re.Pattern[str], name: str) -> None:
        """Attach a pattern consumer repeatedly, with a listing each time."""
        while not self.stopping.is_set():
            worked, consumer = self.calls.do(
                "subscribe to a pattern", lambda: self.client.subscribe(everything, name)
            )
            if worked:
                self.calls.do("close", consumer.close)
            time.sleep(LISTING_PAUSE_SECONDS)

    def _ask(self, topics: list[str]) -> None:
        while not self.stopping.is_set():
            for topic in topics:
                self.calls.do("partitions", lambda one=topic: self.client.get_topic_partitions(one))
            time.sleep(LISTING_PAUSE_SECONDS)

    def missing(self) -> dict[str, int]:
        """Return the number of receipted messages missing for each kind of subscription."""
        every = set().union(*self.receipted.values())
        found = {"pattern": len(every - self.received["", "pattern"])}
        for kind in TYPES:
            lost = [got - self.received[topic, kind] for topic, got in self.receipted.items()]
            found[kind] = sum(map(len, lost))
        return found

    def finish(self) -> None:
        """Stop producing, and consume the rest."""
        self.stopping.set()
        for thread in self.producing:
            thread.join()
        last, left = time.monotonic(), self.missing()
        while any(left.values()) and time.monotonic() - last < QUIET_SECONDS:
            time.sleep(0.1)
            before, left = left, self.missing()
            last = time.monotonic() if left != before else last


def main() -> None:
    """Run until stopped, and print the results."""
    folder, *ways = sys.argv[1:]
    calls = Calls()
    parts = [Way(*way.split("=", 1), Path(folder), calls) for way in ways]
    for part in parts:
        part.start()
    _say(STARTED)
    sys.stdin.readline()
    for part in parts:
        part.finish()
    receipted = sum(len(got) for part in parts for got in part.receipted.values())
    _say(
        {
            "calls": calls.counts,
            "longest_seconds": calls.longest,
            "failures": calls.failures,
            "receipted": receipted,
            "repeated": sum(part.repeated for part in parts),
            "missing": {part.name: part.missing() for part in parts},
        }
    )
    # Threads still wait within the client.
    os._exit(0)


def _say(value: object) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
