"""Every recorded request of every role, replayed to broker and proxy over sockets.

With profile pulsar the answers must be a real broker's, except for listed differences. With profile
floodgate, which has different sentences, the same must be allowed.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING

from tests.proof.result import ProofOptions, ProofResult
from tests.support.security.expiry import record_expiry
from tests.support.security.replay import (
    Replayed,
    everything,
    make_schemas,
    one_of,
    replay_connects,
    replay_questions,
    replay_rest,
    replay_rows,
    unlisted,
)
from tests.support.security.revoked import record_revoked
from tests.support.security.servers import Secured, secured

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.security.replay import Chosen

    Replay = Callable[[], Replayed]

QUICK = one_of(11)
SHOWN = 5
OF_SCHEMAS = ("GET_SCHEMA", "GET_OR_CREATE_SCHEMA")


def prove(options: ProofOptions) -> ProofResult:
    """Replay all recordings; quick: a few of each, without waits for expiring tokens."""
    result = ProofResult()
    asyncio.run(_prove(options, result))
    return result


async def _prove(options: ProofOptions, result: ProofResult) -> None:
    chosen = QUICK if options.quick else everything
    async with secured("pulsar") as servers:
        await _all(_recorded(servers, chosen, quick=options.quick), options, result)
    async with secured("pulsar", forwarding=True) as servers:
        await _all(_forwarded(servers, chosen, quick=options.quick), options, result)
    async with secured("floodgate") as servers:
        await _all(_as_allowed(servers, chosen), options, result)


async def _all(replays: dict[str, Replay], options: ProofOptions, result: ProofResult) -> None:
    for name, replay in replays.items():
        options.note(name)
        found = await asyncio.to_thread(replay)
        different = unlisted(found)
        result.figures[f"{name}: answers"] = found.asked
        result.figures[f"{name}: listed differences"] = len(found.differences) - len(different)
        shown = "; ".join(
            f"{one.asked} as {one.who}: {one.recorded} there, {one.came} here"
            for one in different[:SHOWN]
        )
        sentence = f"{found.asked} answers, {len(different)} differ {shown}"
        result.check(name, found.asked > 0 and not different, sentence)


def _recorded(servers: Secured, chosen: Chosen, *, quick: bool) -> dict[str, Replay]:
    """Return the replays in recorded order: REST calls change much."""
    found: dict[str, Replay] = {
        "connects": partial(replay_connects, servers.address, "connect"),
        "connects through the proxy": partial(
            replay_connects, servers.proxy_address, "proxy-connect"
        ),
        "commands": partial(replay_questions, servers.address, "questions", chosen),
        "odd names": partial(replay_questions, servers.address, "names", chosen),
        "commands through the proxy": partial(_with_schemas, servers, chosen),
    }
    if not quick:
        found |= {
            "tokens that expire": _rows("expiry", servers.address),
            "tokens that expire at the proxy": _rows("proxy-expiry", servers.proxy_address),
            "grants that are revoked": lambda: replay_rows(
                "revoked", record_revoked(servers.address, servers.web)
            ),
        }
    return found | {
        "REST through the proxy": partial(
            replay_rest, servers.web, QUICK, behind=servers.proxy_web
        ),
        "REST": partial(replay_rest, servers.web, chosen),
    }


def _forwarded(servers: Secured, chosen: Chosen, *, quick: bool) -> dict[str, Replay]:
    found: dict[str, Replay] = {
        "connects, original credentials asked for": partial(
            replay_connects, servers.address, "forwarding-connect"
        ),
        "connects through a proxy that forwards": partial(
            replay_connects, servers.proxy_address, "forwarding-proxy-connect"
        ),
        "commands through a proxy that forwards": partial(
            replay_questions,
            servers.proxy_address,
            "forwarding-proxy-questions",
            chosen,
            via=servers.address,
        ),
    }
    if not quick:
        name = "forwarding-proxy-expiry"
        found["tokens that expire, forwarded"] = _rows(name, servers.proxy_address)
    return found


def _rows(name: str, address: str) -> Replay:
    return lambda: replay_rows(name, record_expiry(address))


def _with_schemas(servers: Secured, chosen: Chosen) -> Replayed:
    make_schemas(servers.address)
    return replay_questions(servers.proxy_address, "proxy-questions", chosen, via=servers.address)


def _as_allowed(servers: Secured, chosen: Chosen) -> dict[str, Replay]:
    return {"profile floodgate allows the same": partial(_allowed_alike, servers, chosen)}


def _allowed_alike(servers: Secured, chosen: Chosen) -> Replayed:
    found = replay_questions(servers.address, "questions", chosen)
    different = [
        one
        for one in found.differences
        if not one.asked.startswith(OF_SCHEMAS)
        and _is_allowed(one.recorded) is not _is_allowed(one.came)
    ]
    return Replayed(found.asked, different)


def _is_allowed(answer: str) -> bool:
    return "AuthorizationError" not in answer and "Tenant or namespace" not in answer
