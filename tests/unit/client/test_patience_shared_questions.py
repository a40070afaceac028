"""Concurrent identical questions are sent once, within a bound of concurrent questions."""

import asyncio
import gc
from contextlib import suppress
from weakref import ref

import pytest

from client.patience import SharedQuestions
from tests.support.clocks.settle import settle, started


class Server:
    """Answers on command."""

    def __init__(self, places: int = 10) -> None:
        self.questions: SharedQuestions[str] = SharedQuestions(asyncio.Semaphore(places))
        self.asked: list[str] = []
        self.answers: dict[str, asyncio.Future[str]] = {}

    async def ask(self, key: str) -> str:
        async def question() -> str:
            self.asked.append(key)
            self.answers[key] = asyncio.get_running_loop().create_future()
            return await self.answers[key]

        return await self.questions.answer(key, question)


async def test_those_who_ask_the_same_share_one_question() -> None:
    server = Server()
    askers = [await started(server.ask("a")) for _ in range(3)]
    server.answers["a"].set_result("yes")
    assert await asyncio.gather(*askers) == ["yes"] * 3
    assert (server.asked, len(server.questions)) == (["a"], 0)


async def test_an_answer_is_not_kept() -> None:
    server = Server()
    for _ in range(2):
        asker = await started(server.ask("a"))
        server.answers["a"].set_result("yes")
        await asker
    assert server.asked == ["a", "a"]


async def test_an_error_reaches_all_who_asked() -> None:
    server = Server()
    askers = [await started(server.ask("a")) for _ in range(2)]
    server.answers["a"].set_exception(KeyError("no"))
    for asker in askers:
        with pytest.raises(KeyError, match="no"):
            await asker


class Asks:
    async def fails(self) -> str:
        raise ValueError("not now")


async def test_who_asked_what_failed_is_freed_at_once() -> None:
    asks, questions = Asks(), SharedQuestions[str](asyncio.Semaphore(1))
    kept = ref(asks)
    gc.disable()
    try:
        with suppress(ValueError):
            await questions.answer("a", asks.fails)
        del asks
        await settle()
        assert kept() is None
    finally:
        gc.enable()


async def test_so_many_are_put_at_once_and_the_next_waits_for_its_turn() -> None:
    server = Server(places=2)
    askers = [await started(server.ask(key)) for key in "abc"]
    before = list(server.asked)
    server.answers["a"].set_result("yes")
    await settle()
    assert (before, server.asked) == (["a", "b"], ["a", "b", "c"])
    for key in "bc":
        server.answers[key].set_result("yes")
    await asyncio.gather(*askers)


async def test_a_question_is_given_up_with_its_last_asker() -> None:
    server = Server(places=1)
    first, second = [await started(server.ask("a")) for _ in range(2)]
    first.cancel()
    await settle()
    kept = not server.answers["a"].cancelled()
    second.cancel()
    await settle()
    assert kept
    assert server.answers["a"].cancelled()
    assert len(server.questions) == 0


async def test_who_asks_when_a_question_was_given_up_gets_a_question_of_their_own() -> None:
    server = Server()
    first = await started(server.ask("a"))
    first.cancel()
    second = await started(server.ask("a"))
    server.answers["a"].set_result("yes")
    assert await second == "yes"
