"""Password guessing costs little, and locks no other user out."""

import asyncio
import threading
from pathlib import Path

import pytest

from server.authentication.basic.passwords import apr1, is_password
from server.authentication.basic.provider import (
    FREE_A_SECOND,
    LATE_SECONDS,
    MAX_PASSWORD_BYTES,
    MOST_LATE,
    BasicProvider,
)
from server.authentication.providers import AuthenticationError
from tests.support.clocks.manual_clock import ManualClock
from tests.support.processes.cluster import until

HERE, THERE = "192.0.2.1", "192.0.2.2"
LONGEST = b"x" * MAX_PASSWORD_BYTES


class Asked:
    """A provider, and the recorded hashes."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        users = {"ann": b"right", "bob": b"right", "cid": LONGEST}
        lines = [f"{name}:{apr1(password, 'salt')}\n" for name, password in users.items()]
        (folder / "users").write_text("".join(lines))
        self.clock = ManualClock()
        self.provider = BasicProvider(f"file://{folder / 'users'}", self.clock)
        self.hashed: list[bytes] = []
        self.threads: set[int] = set()

        def counted(password: bytes, kept: str) -> bool:
            self.hashed.append(password)
            self.threads.add(threading.get_ident())
            return is_password(password, kept)

        monkeypatch.setattr("server.authentication.basic.provider.is_password", counted)

    async def role(self, data: bytes, address: str = HERE) -> str | None:
        await self.provider.prepare(data, address)
        try:
            return self.provider.authenticate(data, None).role
        except AuthenticationError:
            return None


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    return Asked(tmp_path, monkeypatch)


async def flood(asked: Asked, count: int) -> list[asyncio.Task[str | None]]:
    """Guess until further guesses are refused with a delay."""
    tasks = [asyncio.create_task(asked.role(b"no%d:wrong" % one)) for one in range(count)]
    await asyncio.gather(*tasks[: int(FREE_A_SECOND)])
    return tasks


async def test_no_password_is_hashed_on_the_thread_of_the_event_loop(asked: Asked) -> None:
    assert await asked.role(b"ann:right") == "ann"
    assert await asked.role(b"ann:wrong") is None
    assert len(asked.hashed) == 2
    assert threading.get_ident() not in asked.threads


async def test_a_verified_password_is_hashed_once_and_a_wrong_password_each_time(
    asked: Asked,
) -> None:
    for data, role in ((b"ann:right", "ann"), (b"ann:wrong", None), (b"ann:right", "ann")):
        assert await asked.role(data) == role
        assert await asked.role(data) == role
    assert asked.hashed == [b"right", b"wrong", b"wrong"]


async def test_a_password_longer_than_htpasswd_allows_is_refused_without_a_hash(
    asked: Asked,
) -> None:
    assert await asked.role(b"cid:" + LONGEST) == "cid"
    assert await asked.role(b"cid:" + LONGEST + b"x") is None
    assert asked.hashed == [LONGEST]


async def test_a_flood_of_guesses_from_an_address_is_hashed_at_a_bounded_rate(asked: Asked) -> None:
    tasks = await flood(asked, 100)
    assert len(asked.hashed) <= FREE_A_SECOND + 1
    asked.clock.advance(LATE_SECONDS)
    assert set(await asyncio.gather(*tasks)) == {None}


async def test_a_flood_of_guesses_delays_no_right_password_of_its_address(asked: Asked) -> None:
    assert await asked.role(b"ann:right") == "ann"
    tasks = await flood(asked, MOST_LATE)  # Time stands still, and failed callers wait.
    assert await asked.role(b"ann:right") == "ann"
    assert await asked.role(b"bob:right") == "bob"
    assert not all(task.done() for task in tasks)
    asked.clock.advance(LATE_SECONDS)
    await asyncio.gather(*tasks)


async def test_a_flood_of_guesses_delays_no_client_of_a_different_address(asked: Asked) -> None:
    tasks = await flood(asked, 200)
    assert await asked.role(b"ann:right", THERE) == "ann"
    assert await asked.role(b"ann:wrong", THERE) is None
    asked.clock.advance(LATE_SECONDS)
    await asyncio.gather(*tasks)


async def test_during_a_flood_known_and_unknown_names_are_delayed_alike(asked: Asked) -> None:
    tasks = await flood(asked, 30)
    guesses = [asyncio.create_task(asked.role(one)) for one in (b"ann:wrong", b"nobody:wrong")]
    await until(lambda: len(asked.hashed) > FREE_A_SECOND + 1)
    assert not any(guess.done() for guess in guesses)
    asked.clock.advance(LATE_SECONDS)
    assert await asyncio.gather(*guesses) == [None, None]
    await asyncio.gather(*tasks)
