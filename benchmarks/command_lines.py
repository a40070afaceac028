"""The child's side of ``controlled_process``: a process that reads and answers commands."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    Handler = Callable[..., Awaitable[Mapping[str, Any]]]


async def answer_commands(ready: Mapping[str, Any], handlers: Mapping[str, Handler]) -> None:
    """Write the first line, and then answer commands until standard input ends.

    Args:
        ready: The first line, as a JSON object.
        handlers: A function for each command, called with the command's other fields.
    """
    _write(ready)
    loop = asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        command = json.loads(line)
        handler = handlers[command.pop("do")]
        _write(await handler(**command))


def _write(answer: Mapping[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
