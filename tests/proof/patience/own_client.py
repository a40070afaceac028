"""This project's client as the proof's conversation program; see program.py."""

import asyncio
import logging
import sys
from pathlib import Path
from typing import Any

from client import Client, MessageId, Producer, PulsarException

SECONDS = 5


class Cell:
    """A client with a consumer or producer."""

    def __init__(self) -> None:
        self._client: Any = None
        self._attached: Any = None

    async def do(self, cell: str, verb: str, arguments: list[str]) -> None:
        """Run a command, and answer."""
        word = "ok"
        try:
            await getattr(self, verb)(*arguments)
        except PulsarException as error:
            word = type(error).__name__
        sys.stdout.write(f"{cell} {word}\n")
        sys.stdout.flush()

    async def consumer(self, url: str, topic: str) -> None:
        self._client = Client(url, operation_timeout_seconds=SECONDS)
        self._attached = await self._client.subscribe(topic, "s")

    async def producer(self, url: str, topic: str) -> None:
        self._client = Client(url, operation_timeout_seconds=SECONDS)
        self._attached = await self._client.create_producer(
            topic, send_timeout_millis=1_000 * SECONDS
        )

    async def use(self) -> None:
        if isinstance(self._attached, Producer):
            await self._attached.send(b"x")
        else:
            await self._attached.acknowledge(await self._attached.receive(1_000 * SECONDS))

    async def last(self) -> None:
        """Request the last message's id."""
        await self._attached.get_last_message_id()

    async def seek(self) -> None:
        """Seek to the beginning."""
        await self._attached.seek(MessageId.earliest)

    async def close(self) -> None:
        await self._client.close()


async def main() -> None:
    """Run each line's command in a task."""
    logging.basicConfig(filename=Path(sys.argv[1]) / "client-own.log", level=logging.INFO)
    cells: dict[str, Cell] = {}
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    async with asyncio.TaskGroup() as group:
        while line := await lines.readline():
            cell, verb, *arguments = line.decode().split()
            group.create_task(cells.setdefault(cell, Cell()).do(cell, verb, arguments))


if __name__ == "__main__":
    asyncio.run(main())
