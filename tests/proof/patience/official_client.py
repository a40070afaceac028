"""The official Python client as the proof's conversation program; see program.py."""

import os
import sys
import threading
from pathlib import Path
from typing import Any

import pulsar

SECONDS = 5
_lock = threading.Lock()


def answer(cell: str, word: str) -> None:
    with _lock:
        sys.stdout.write(f"{cell} {word}\n")
        sys.stdout.flush()


class Cell:
    """A client with a consumer or producer."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._client: Any = None
        self._attached: Any = None

    def do(self, cell: str, verb: str, arguments: list[str]) -> None:
        """Run a command, and answer."""
        try:
            getattr(self, verb)(*arguments)
            answer(cell, "ok")
        except pulsar.PulsarException as error:
            answer(cell, type(error).__name__)

    def consumer(self, url: str, topic: str) -> None:
        self._open(url)
        self._attached = self._client.subscribe(topic, "s")

    def producer(self, url: str, topic: str) -> None:
        self._open(url)
        self._attached = self._client.create_producer(topic, send_timeout_millis=1_000 * SECONDS)

    def _open(self, url: str) -> None:
        self._client = pulsar.Client(url, operation_timeout_seconds=SECONDS, logger=self._log)

    def use(self) -> None:
        if isinstance(self._attached, pulsar.Producer):
            self._attached.send(b"x")
        else:
            self._attached.acknowledge(self._attached.receive(1_000 * SECONDS))

    def last(self) -> None:
        """Request the last message's id."""
        self._attached.get_last_message_id()

    def seek(self) -> None:
        """Seek to the beginning."""
        self._attached.seek(pulsar.MessageId.earliest)

    def close(self) -> None:
        self._client.shutdown()


def main() -> None:
    """Run each line's command in a thread."""
    folder = Path(sys.argv[1])
    log = pulsar.FileLogger(pulsar.LoggerLevel.Info, str(folder / "client-python.log"))
    cells: dict[str, Cell] = {}
    for line in sys.stdin:
        cell, verb, *arguments = line.split()
        one = cells.setdefault(cell, Cell(log))
        threading.Thread(target=one.do, args=(cell, verb, arguments), daemon=True).start()
    os._exit(0)


if __name__ == "__main__":
    main()
