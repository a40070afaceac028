"""Runs an official client against a scripted broker and returns what was seen."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.discovery.scripted_broker import ScriptedBroker
from tests.support.discovery.scripts import OPERATION_SECONDS, PATTERN, SCRIPTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.support.discovery.scripts import Script

START_SECONDS = 30.0


async def record(command: Sequence[str], script: Script, folder: Path) -> list[dict[str, Any]]:
    """Return what a scripted broker saw of one consumer, and what its program said."""
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


async def main(family: str, out: Path, command: Sequence[str], names: Sequence[str]) -> None:
    """Record all scripts of a family, a few at a time."""
    places = asyncio.Semaphore(3)
    recordings: dict[str, list[dict[str, Any]]] = {}

    async def one(name: str) -> None:
        async with places:
            folder = out.parent / "logs" / name.replace(" ", "-")
            folder.mkdir(parents=True, exist_ok=True)
            try:
                recordings[name] = await record(command, SCRIPTS[name], folder)
            except TimeoutError:
                recordings[name] = [{"error": "no listing"}]

    wanted = [
        n
        for n, s in SCRIPTS.items()
        if (not names or n in names) and (not s.families or family in s.families)
    ]
    await asyncio.gather(*map(one, wanted))
    lines = []
    for name in wanted:
        for seen in recordings[name]:
            lines.append(json.dumps({"script": name, **seen}))
    out.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    family, out, cmd = sys.argv[1:4]
    asyncio.run(main(family, Path(out), cmd.split(), sys.argv[4:]))
