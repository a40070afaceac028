"""Runs an official client against a scripted broker and records the exchange."""

import asyncio
import json
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from tests.support.discovery.scripted_broker import ScriptedBroker
from tests.support.discovery.scripts import OPERATION_SECONDS, PATTERN, SCRIPTS, Script

START_SECONDS = 30.0
AT_ONCE = 3


async def record(command: Sequence[str], script: Script, folder: Path) -> list[dict[str, Any]]:
    """Return the scripted broker's record of a consumer, and the program's output."""
    broker = ScriptedBroker(script)
    url = await broker.listen()
    arguments = (url, PATTERN, str(script.period_seconds), str(OPERATION_SECONDS))
    process = await asyncio.create_subprocess_exec(
        *command,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=folder,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    listening = asyncio.create_task(_said(broker, process.stdout))
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(START_SECONDS):  # noqa: TID251 - a process, in real time
            await broker.first_listing.wait()
        started = loop.time()
        for at, event in (*script.events, (script.seconds, "")):
            await asyncio.sleep(max(0.0, started + at - loop.time()))
            if event:
                await broker.happen(event)
        broker.note("event", event="close")
        process.stdin.close()
        await asyncio.wait([asyncio.create_task(process.wait())], timeout=5)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        await listening
    return broker.seen


async def _said(broker: ScriptedBroker, output: asyncio.StreamReader) -> None:
    while line := await output.readline():
        broker.note("program", says=line.decode().strip())


async def main(
    family: str, logs: Path, command: Sequence[str], names: Sequence[str]
) -> list[dict[str, Any]]:
    """Return a client's records in the informative scripts."""
    places = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> list[dict[str, Any]]:
        async with places:
            folder = logs / name.replace(" ", "-")
            folder.mkdir(parents=True, exist_ok=True)
            seen = await record(command, SCRIPTS[name], folder)
            return [{"script": name, **line} for line in seen]

    wanted = [
        name
        for name, script in SCRIPTS.items()
        if name in (names or SCRIPTS) and family in (script.families or {family})
    ]
    return list(chain.from_iterable(await asyncio.gather(*map(one, wanted))))


if __name__ == "__main__":
    client, out, program = sys.argv[1], Path(sys.argv[2]), sys.argv[3].split()
    found = asyncio.run(main(client, out.parent / "logs", program, sys.argv[4:]))
    out.write_text("".join(json.dumps(line) + "\n" for line in found), encoding="utf-8")
