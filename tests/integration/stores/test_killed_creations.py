"""kill -9 of the broker during creations: acknowledged topics survive."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import aiohttp
import pytest

from loadgen.places.server_process import ServerLaunch, running_server

TOPICS = 400
KILLS = 2
NAMESPACE = "public/default"
CONNECTIONS = 8
_CREATED, _EXISTS = 204, 409


@dataclass
class KilledCreations:
    acknowledged: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)
    kills: int = 0


def create_and_kill(
    launch: Callable[[int], ServerLaunch], count: int, kill_at: Sequence[int]
) -> KilledCreations:
    """Create topics and SIGKILL the broker at given numbers of acknowledgements.

    Args:
        launch: Starts the broker; takes the number of earlier starts.
        count: Topics in all.
        kill_at: Numbers of acknowledged creations, rising.
    """
    names = [f"persistent://{NAMESPACE}/t-{number:06d}" for number in range(count)]
    found = KilledCreations()
    for start, stop_at in enumerate([*kill_at, count + 1]):
        with running_server(launch(start)) as broker:
            asyncio.run(_check(broker.web_url, names, found))
            left = [name for name in names if name not in found.acknowledged]
            asyncio.run(_create(broker.web_url, left, found, _killer(found, stop_at, broker.pid)))
    with running_server(launch(len(kill_at) + 1)) as broker:
        asyncio.run(_check(broker.web_url, names, found))
    return found


def _killer(found: KilledCreations, at: int, pid: int) -> Callable[[], None]:
    def acknowledged() -> None:
        if len(found.acknowledged) == at:
            os.kill(pid, signal.SIGKILL)
            found.kills += 1

    return acknowledged


async def _create(
    web_url: str, names: Iterable[str], found: KilledCreations, acknowledged: Callable[[], None]
) -> None:
    """Create topics over several connections, until all are or the broker is gone."""
    waiting = iter(names)
    # Without this type, aiohttp declares a missing body application/octet-stream.
    json = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(web_url, headers=json) as session:
        workers = [_worker(session, waiting, found, acknowledged) for _ in range(CONNECTIONS)]
        await asyncio.gather(*workers)


async def _worker(
    session: aiohttp.ClientSession,
    waiting: Iterator[str],
    found: KilledCreations,
    acknowledged: Callable[[], None],
) -> None:
    for name in waiting:
        path = name.replace("://", "/")
        try:
            async with session.put(f"/admin/v2/{path}") as answer:
                assert answer.status in (_CREATED, _EXISTS), await answer.text()
        except aiohttp.ClientError:
            return
        found.acknowledged.add(name)
        acknowledged()


async def _check(web_url: str, names: Sequence[str], found: KilledCreations) -> None:
    async with (
        aiohttp.ClientSession(web_url) as session,
        session.get(f"/admin/v2/persistent/{NAMESPACE}") as answer,
    ):
        listed = set(await answer.json())
    found.lost |= found.acknowledged - listed
    found.unknown |= listed.difference(names)


def kill_points(count: int, kills: int) -> list[int]:
    """Return evenly spread points, away from the beginning and the end."""
    return [count * (2 * number + 1) // (2 * kills) for number in range(kills)]


@pytest.mark.processes
@pytest.mark.parametrize("store", ["sqlite", "postgresql"])
def test_every_acknowledged_creation_survives_a_kill(store: str, tmp_path, request) -> None:
    url = f"sqlite:///{tmp_path}/topics.db"
    if store == "postgresql":
        url = request.getfixturevalue("postgresql_url")
    keys = {"metadataStoreUrl": url, "bindAddress": "127.0.0.1", "webServicePort": "0"}
    settings = {**keys, "brokerServicePort": "0", "advertisedAddress": "127.0.0.1"}
    found = create_and_kill(
        lambda start: ServerLaunch("broker", settings, tmp_path / f"{start}.log"),
        TOPICS,
        kill_points(TOPICS, KILLS),
    )
    assert found.kills == KILLS
    assert len(found.acknowledged) == TOPICS
    assert not found.lost
    assert not found.unknown
