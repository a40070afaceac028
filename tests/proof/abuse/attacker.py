"""The attacker's process: ``python -m tests.proof.abuse.attacker``; see controlled_process.

``{"do": "attack", "name": ..., "lasts": ..., "targets": [...]}`` carries one attack out on all
targets at once and answers what became of it, by target.
"""

import asyncio
import os
from typing import Any

from benchmarks.command_lines import answer_commands
from loadgen.engine.connecting import raise_open_file_limit
from server.loop import run
from tests.proof.abuse.attacks import ATTACKS
from tests.proof.abuse.crowd import Target

OPEN_FILES = 18_000
LESS_URGENT = 5
"""Attackers would have machines of their own; here they get what servers and the healthy leave."""


async def main() -> None:
    """Attack as told."""

    async def attack(name: str, lasts: float, targets: list[dict[str, Any]]) -> dict[str, Any]:
        told = [_target(each) for each in targets]
        found = await asyncio.gather(*(ATTACKS[name].run(each, lasts) for each in told))
        return {each.role: dict(counts) for each, counts in zip(told, found, strict=True)}

    await answer_commands({}, {"attack": attack})


def _target(said: dict[str, Any]) -> Target:
    """Make a target of what JSON left of one."""
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in said.items()
    }
    return Target(**values)


if __name__ == "__main__":
    os.nice(LESS_URGENT)
    raise_open_file_limit(OPEN_FILES)
    run(main())
