"""Four clients' reactions to errors at each step of attaching: ours is as patient as any.

Each error is returned twice and then cleared, at each step of a first attachment and of a lost
attachment: to the official clients of Python, Java and Go, to ours, and to a named client.
"""

import asyncio
import shlex
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack

from loadgen.places.server_process import ServerLaunch, ServerProcess, running_server
from tests.proof.faults.beside_clients import ON
from tests.proof.patience.cells import AGAIN, CELLS, CONNECT, FIRST, STEPS, Cell, Place, Playing
from tests.proof.patience.program import Program, running_program
from tests.proof.patience.table import Outcomes, less_patient, table_of
from tests.proof.programs import LANGUAGES, official_command
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import LOCAL, check_logs

OWN = "ours"
AT_ONCE = 20
LANES = 4
"""Brokers for CONNECT, which names no topic: one cell at a time each."""
QUICK_ERRORS = ("TooManyRequests", "AuthorizationError")


def prove(options: ProofOptions) -> ProofResult:
    """Play every cell with every client, and compare."""
    options.out.mkdir(parents=True, exist_ok=True)
    programs = {
        OWN: (sys.executable, "-m", "tests.proof.patience.own_client"),
        **{name: _official(name) for name in LANGUAGES},
    }
    if options.client:
        programs["named"] = tuple(shlex.split(options.client))
    cells = [cell for cell in CELLS if not options.quick or cell.error in QUICK_ERRORS]
    result = ProofResult()
    with ExitStack() as stack:
        keys = {"brokerServicePort": "0", **LOCAL, **ON}
        launches = (
            ServerLaunch("broker", keys, options.out / f"broker-{number}.log")
            for number in range(1 + LANES)
        )
        servers = [stack.enter_context(running_server(launch)) for launch in launches]
        outcomes = asyncio.run(_played(options, programs, servers, cells))
    for when in (FIRST, AGAIN):
        for step in STEPS:
            _judge(outcomes, when, step, result)
    result.figures = {
        name: {" ".join(cell): said for cell, said in found.items()}
        for name, found in outcomes.items()
    }
    result.table = table_of(outcomes)
    (options.out / "table.md").write_text(result.table, encoding="utf-8")
    check_logs(options.out, result)
    return result


def _official(language: str) -> Sequence[str]:
    return official_command(language, "tests.proof.patience.official_client", "Patient", "patient")


def _judge(outcomes: Outcomes, when: str, step: str, result: ProofResult) -> None:
    less = [
        f"{cell.error}: {outcomes[OWN][cell]}"
        for cell in less_patient(outcomes, OWN, LANGUAGES)
        if (cell.when, cell.step) == (when, step)
    ]
    said = "; ".join(less) or "ours goes on wherever an official client does"
    result.check(f"{when} {step}", not less, f"{when}, {step}: {said}")


async def _played(
    options: ProofOptions,
    commands: Mapping[str, Sequence[str]],
    servers: Sequence[ServerProcess],
    cells: Sequence[Cell],
) -> Outcomes:
    outcomes: Outcomes = {name: dict.fromkeys(cells, "") for name in commands}
    shared, *lanes = places = [Place(server) for server in servers]
    at_once = asyncio.Semaphore(AT_ONCE)
    done = 0

    async def play(place: Place, program: Program, cell: Cell) -> None:
        nonlocal done
        outcomes[program.name][cell] = await Playing(place, program, cell).outcome()
        done += 1
        options.note(f"{done} of {len(cells) * len(commands)}")

    async def play_shared(program: Program, cell: Cell) -> None:
        async with at_once:
            await play(shared, program, cell)

    async def play_alone(number: int, program: Program, cell: Cell) -> None:
        place = lanes[number % LANES]
        async with place.free:
            await play(place, program, cell)

    async with AsyncExitStack() as stack:
        programs = [
            await stack.enter_async_context(running_program(name, command, options.out))
            for name, command in commands.items()
        ]
        for place in places:
            stack.push_async_callback(place.close)
        await asyncio.gather(
            *(
                play_alone(number, program, cell)
                if cell.step == CONNECT
                else play_shared(program, cell)
                for cell in cells
                for number, program in enumerate(programs)
            )
        )
    return outcomes
