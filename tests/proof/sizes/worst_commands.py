"""The worst commands that broker and proxy accept: the delay by each, in processor time.

Broker, proxy and client share one loop, whose callbacks are timed individually: the figure is the
longest callback of a command, parsing, handling and answering included.
"""

import asyncio
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from typing import NamedTuple

import broker.patterns.pattern
import proto.PulsarApi_pb2 as pb
from broker.cnx import ServerCnxState
from broker.commands.table import COMMANDS
from proto.parsing.command_bounds import COMMAND_BYTES, LARGER_COMMANDS, type_name
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.sizes.nasty_commands import Nasty, nasty_commands
from tests.support.peers.raw_peer import RawPeer, connect_command, frame, ping
from tests.support.processes.cluster import Cluster, cluster, topic_names, until

BOUND_MILLIS = 20.0
ROUNDS = 2
BURST_BYTES = 16_384
"""Smaller commands are repeated up to this size in a single write."""
NAMESPACE = "a/b"
NAMES = 200
REPORTED = 25
PARSED = {kind for state in ServerCnxState for kind in COMMANDS.legal_in(state)}
UNPARSED_CONTENTS = 20
"""Number of tries of commands that are never parsed: their contents are equivalent."""
_PONG = frame(pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong()))[4:]
_LENGTHS = struct.Struct(">II")


class Held(NamedTuple):
    """The longest time that a command held the loop, the best of its rounds."""

    millis: float
    role: str
    state: str
    nasty: Nasty

    def __str__(self) -> str:
        kind = type_name(self.nasty.kind)
        size = len(self.nasty.command)
        return (
            f"{self.millis:.1f} ms, {self.role}, {self.state}: {kind}, {self.nasty.name} ({size} B)"
        )


def prove(options: ProofOptions) -> ProofResult:
    """Send every nasty command, before and after CONNECT, to broker and proxy."""
    with timed_callbacks() as longest:
        found = asyncio.run(_all_held(options, longest))
    found.sort(key=lambda held: held.millis, reverse=True)
    result = ProofResult()
    result.figures = {
        "commands": len(found),
        "worst_ms": found[0].millis,
        "worst": [str(held) for held in found[:REPORTED]],
    }
    result.check(
        "no command holds the loop",
        found[0].millis <= BOUND_MILLIS,
        f"of {len(found):,} commands the worst held it for {found[0]}; allowed are "
        f"{BOUND_MILLIS:g} ms of processor time",
    )
    return result


class Longest:
    """The longest callback since the last take; mutable state of the measurement."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def take(self) -> float:
        """Return it in milliseconds, and reset it."""
        millis, self.seconds = 1_000 * self.seconds, 0.0
        return millis


@contextmanager
def timed_callbacks() -> Iterator[Longest]:
    """Time every callback of asyncio's loops by the processor time of its thread."""
    longest, run = Longest(), asyncio.Handle._run

    def timed(handle: asyncio.Handle) -> None:
        began = time.thread_time()
        run(handle)
        longest.seconds = max(longest.seconds, time.thread_time() - began)

    asyncio.Handle._run = timed  # type: ignore[method-assign]
    try:
        yield longest
    finally:
        asyncio.Handle._run = run  # type: ignore[method-assign]


async def _all_held(options: ProofOptions, longest: Longest) -> list[Held]:
    found = []
    async with cluster({NAMESPACE: topic_names(NAMESPACE, NAMES)}) as parts:
        for kind in pb.BaseCommand.Type.values():
            options.note(f"{type_name(kind)}: {len(found):,} commands so far")
            for nasty in _those_to_say(kind, options):
                found += [
                    await _held(parts, role, state, nasty, longest)
                    for role in ("broker", "proxy")
                    for state in ("before CONNECT", "connected")
                ]
    return found


def _those_to_say(kind: int, options: ProofOptions) -> Iterator[Nasty]:
    size_bytes = LARGER_COMMANDS.get(kind, COMMAND_BYTES)
    every = nasty_commands(kind, size_bytes)
    if options.quick:
        return islice(every, 2)
    return every if kind in PARSED else islice(every, UNPARSED_CONTENTS)


async def _held(parts: Cluster, role: str, state: str, nasty: Nasty, longest: Longest) -> Held:
    rounds = []
    for _ in range(ROUNDS):
        async with await RawPeer.connect(parts.part(role).service_url, 1 << 20) as peer:
            if state == "connected":
                await peer.send(connect_command())
                await peer.command()
            lengths = _LENGTHS.pack(len(nasty.command) + 4, len(nasty.command))
            whole = lengths + nasty.command
            data = whole * max(1, BURST_BYTES // len(whole)) + frame(ping())
            broker.patterns.pattern._compiled.clear()
            longest.take()
            await _said(parts, peer, data)
            rounds.append(longest.take())
    return Held(min(rounds), role, state, nasty)


async def _said(parts: Cluster, peer: RawPeer, data: bytes) -> None:
    """Wait until a command, and a PING after it, were answered or closed."""
    with suppress(OSError, EOFError):
        await peer.send_bytes(data)
        while await peer.frame() != _PONG:
            pass
    await until(lambda: not parts.broker.lookups.pending_requests)
    await until(lambda: not parts.proxy.lookups.pending_requests)
