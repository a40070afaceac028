"""The attacker's process: ``python -m tests.proof.abuse.attacker``; see controlled_process.

``{"do": "attack", "name": ..., "lasts": ..., "targets": [...]}`` runs one attack on all targets
simultaneously and returns its counts by target.
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
"""Attackers would have separate machines; here they get the cores that servers and healthy clients
leave.
"""


async def main() -> None:
    async def attack(name: str, lasts: float, targets: list[dict[str, Any]]) -> dict[str, Any]:
        told = [_target(each) for each in targets]
        found = await asyncio.gather(*(ATTACKS[name].run(each, lasts) for each in told))
        return {each.role: dict(counts) for each, counts in zip(told, found, strict=True)}

    await answer_commands({}, {"attack": attack})


def _target(said: dict[str, Any]) -> Target:
    """Rebuild a target from its JSON form."""
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in said.items()
    }
    return Target(**values)


if __name__ == "__main__":
    os.nice(LESS_URGENT)
    raise_open_file_limit(OPEN_FILES)
    run(main())
