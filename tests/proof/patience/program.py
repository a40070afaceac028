"""A client as a program: a line on its input is a request, a line on its output an answer.

The last argument of the program is the folder for its logs. Each answer, at any time, is the first
word of the line, and ``ok`` or the name of an error. Each first word (``A``) is a separate client
with one request at a time; all timeouts are 5 s.

``A consumer URL TOPIC``, ``A producer URL TOPIC``: make a client, and subscribe or make a producer.
``A use``: receive and acknowledge a message (``Timeout`` without a message), or send a message. ``A
last``, ``A seek``, ``A close``: request the last message's id, seek to the beginning, close.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.processes import ROOT
from limiter.clock import LoopClock, deadline
from tests.proof.result import ProofError

ANSWER_SECONDS = 20.0
OK = "ok"
SILENT = "no answer"


class Program:
    def __init__(self, name: str, process: asyncio.subprocess.Process) -> None:
        self.name = name
        self._process = process
        self._asked: dict[str, asyncio.Future[str]] = {}

    async def ask(self, cell: str, *words: str) -> str:
        """Return ``ok``, the name of an error, or the note of a missing answer.

        Raises:
            ProofError: The program ended.
        """
        assert self._process.stdin is not None
        if self._process.returncode is not None:
            raise self._ended()
        answer = self._asked[cell] = asyncio.get_running_loop().create_future()
        self._process.stdin.write(f"{' '.join((cell, *words))}\n".encode())
        try:
            async with deadline(LoopClock(), ANSWER_SECONDS):
                return await answer
        except TimeoutError:
            return SILENT

    async def listen(self) -> None:
        """Read its answers until it ends."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            cell, _, word = line.decode().strip().partition(" ")
            answer = self._asked.get(cell)
            if answer is not None and not answer.done():
                answer.set_result(word)
        for answer in self._asked.values():
            if not answer.done():
                answer.set_exception(self._ended())

    def _ended(self) -> ProofError:
        return ProofError(f"the client {self.name} ended; see {self.name}.err")


@asynccontextmanager
async def running_program(
    name: str, command: Sequence[str], folder: Path
) -> AsyncIterator[Program]:
    """Run a program for a block; its errors go to ``NAME.err``."""
    with (folder / f"{name}.err").open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *command,
            str(folder),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
        )
        program = Program(name, process)
        listening = asyncio.create_task(program.listen())
        try:
            yield program
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()
            await listening
