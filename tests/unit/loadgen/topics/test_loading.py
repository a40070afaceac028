"""Topics are loaded by import, or singly."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.errors import ExitCode, LoadgenError, UsageError
from loadgen.topics.corpus import write_corpus
from loadgen.topics.executors import in_this_process
from loadgen.topics.load_state import LoadState
from loadgen.topics.loading import load_by_import, load_by_rest
from loadgen.topics.plan import TopicPlan

PLAN = TopicPlan(200, 2, seed=7)


class FakeAdmin:
    """A scripted admin API that records requests."""

    def __init__(self) -> None:
        self.put: dict[str, object] = {}
        self.posted: list[dict[str, object]] = []
        self.calls = self.most_calls = 0
        self.answer: tuple[int, str] = (404, "")
        self.refused_files: set[str] = set()
        self.busy: dict[str, list[int]] = {}

    @property
    def created(self) -> list[str]:
        """Return the paths of the created topics."""
        return [path for path in self.put if "/persistent/" in path]

    async def handle(self, request: web.Request) -> web.Response:
        if request.path == "/admin/v2/clusters":
            return web.json_response(["one", "global"])
        if request.method == "POST":
            asked = await request.json()
            self.posted.append(asked)
            if asked["path"].rpartition("/")[2] in self.refused_files:
                return web.json_response({"reason": "Not now"}, status=412)
            return web.Response(status=self.answer[0], text=self.answer[1])
        if request.path.endswith("/bad"):
            return web.json_response({"reason": "Not this one"}, status=412)
        if self.busy.get(request.path):
            return web.Response(status=self.busy[request.path].pop(0))
        self.calls += 1
        self.most_calls = max(self.most_calls, self.calls)
        body = json.loads(await request.text())
        self.calls -= 1
        status = 409 if request.path in self.put else 204
        self.put[request.path] = body
        return web.Response(status=status)


@asynccontextmanager
async def serving(admin: FakeAdmin) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", admin.handle)
    async with TestServer(app) as server:
        yield str(server.make_url("/"))


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write_corpus(PLAN, tmp_path / "x", 2, in_this_process(lambda done: None)).directory


def nobody(count: int) -> None:
    """Ignored progress."""


def text(tmp_path: Path, *names: str) -> Path:
    path = tmp_path / "names.txt"
    path.write_text("\n".join(names) + "\n")
    return path


async def test_rest_creates_every_topic_once_with_its_partitions(corpus: Path) -> None:
    admin = FakeAdmin()
    async with serving(admin) as url:
        loaded = await load_by_rest(corpus, url, nobody, 4)
    assert (loaded.topics, loaded.namespaces, loaded.existing) == (200, 2, 0)
    tenants = [body for path, body in admin.put.items() if "/tenants/" in path]
    assert all(body == {"adminRoles": [], "allowedClusters": ["one"]} for body in tenants)
    created = {path: body for path, body in admin.put.items() if "/persistent/" in path}
    partitions = sum(body["partitions"] for path, body in created.items()
                     if path.endswith("/partitions"))  # fmt: skip
    plain = sum(1 for path in created if not path.endswith("/partitions"))
    assert partitions + plain == 200


async def test_rest_calls_stay_within_the_concurrency_limit(corpus: Path) -> None:
    admin = FakeAdmin()
    async with serving(admin) as url:
        await load_by_rest(corpus, url, nobody, 3)
    assert 1 <= admin.most_calls <= 3


async def test_existing_topics_count_as_loaded(corpus: Path) -> None:
    admin = FakeAdmin()
    async with serving(admin) as url:
        first = await load_by_rest(corpus, url, nobody, 4)
        again = await load_by_rest(corpus, url, nobody, 4)
    assert again.topics == first.topics
    assert again.existing == len([path for path in admin.put if "/persistent/" in path])


async def test_a_refusal_by_the_server_is_reported_with_its_reason(tmp_path: Path) -> None:
    path = text(tmp_path, "persistent://a/b/good", "persistent://a/b/bad")
    async with serving(FakeAdmin()) as url:
        with pytest.raises(LoadgenError, match="refused with HTTP 412: Not this one"):
            await load_by_rest(path, url, nobody, 2)


async def test_an_import_posts_every_file_and_sums_the_counts_of_the_server(corpus: Path) -> None:
    admin = FakeAdmin()
    admin.answer = 200, '{"topics": 100, "namespaces": 1, "seconds": 0.5}'
    async with serving(admin) as url:
        loaded = await load_by_import(corpus, url, nobody)
    assert (loaded.topics, loaded.namespaces) == (200, 2)
    assert admin.posted == [{"path": f"{corpus}/part-0000{part}.parquet"} for part in (0, 1)]


@pytest.mark.parametrize(
    ("status", "body", "said", "exit_code"),
    [
        (404, "<html>", "add --rest", ExitCode.INTERNAL),
        (404, '{"reason": "no such path"}', "HTTP 404: no such path", ExitCode.INTERNAL),
        (500, "", "HTTP 500: the server does not serve", ExitCode.INTERNAL),
        (200, "hello", "is not what the admin REST answers", ExitCode.INTERNAL),
        (200, "{}", "is no import result", ExitCode.INTERNAL),
        (200, '{"topics": 1, "namespaces": 2, "seconds": 1}', "holds 100", ExitCode.CORRECTNESS),
    ],
)
async def test_a_failed_import_is_reported_with_the_reason_and_exit_code(
    corpus, status, body, said, exit_code
) -> None:
    admin = FakeAdmin()
    admin.answer = status, body
    async with serving(admin) as url:
        with pytest.raises(LoadgenError, match=said) as caught:
            await load_by_import(corpus, url, nobody)
    assert caught.value.exit_code == exit_code


async def test_invalid_topics_can_be_skipped_and_are_reported(tmp_path: Path) -> None:
    admin, path = FakeAdmin(), text(tmp_path, "one", "persistent://a/b/c")
    async with serving(admin) as url:
        loaded = await load_by_rest(path, url, nobody, 2, skip_invalid=True)
    assert (loaded.topics, loaded.skipped) == (1, 1)
    assert "line 1: 'one' is not a full topic name" in loaded.report


async def test_topics_skipped_by_an_import_count_as_part_of_the_corpus(corpus: Path) -> None:
    admin = FakeAdmin()
    admin.answer = 200, '{"topics": 98, "namespaces": 1, "seconds": 0.5, "skipped": 2}'
    async with serving(admin) as url:
        loaded = await load_by_import(corpus, url, nobody, skip_invalid=True)
    assert (loaded.topics, loaded.skipped) == (196, 4)
    assert all(posted["skipInvalid"] for posted in admin.posted)


async def test_a_request_to_a_busy_server_is_retried(corpus: Path) -> None:
    admin = FakeAdmin()
    async with serving(admin) as url:
        await load_by_rest(corpus, url, nobody, 4)
        first, second = admin.created[:2]
        admin.busy = {first: [429], second: [503]}
        loaded = await load_by_rest(corpus, url, nobody, 4)
    assert (loaded.topics, loaded.retries) == (200, 2)


async def test_a_load_that_ended_early_resumes_near_its_first_missing_topic(tmp_path: Path) -> None:
    # Given a load whose 31st topic is refused
    names = [f"persistent://a/b/c{number:02}" for number in range(60)]
    path = text(tmp_path, *names)
    admin = FakeAdmin()
    bad = "/admin/v2/persistent/a/b/c30"
    admin.busy = {bad: [412]}
    async with serving(admin) as url:
        with pytest.raises(LoadgenError, match="HTTP 412"):
            await load_by_rest(path, url, nobody, 4)
        before = set(admin.created)
        admin.put.clear()
        loaded = await load_by_rest(path, url, nobody, 4, resume=True)
    # Then all topics exist, and few were created twice: the work of three tasks until the news
    # arrived
    again = set(admin.created)
    assert len(before | again) == 60
    assert len(before & again) <= 12
    assert 26 <= loaded.resumed <= 30
    assert loaded.topics == 60
    assert os.listdir(tmp_path) == ["names.txt"]


async def test_an_import_that_ended_early_resumes_with_the_remaining_files(corpus) -> None:
    # Given a broker that accepts one file and refuses another
    admin = FakeAdmin()
    admin.answer = 200, '{"topics": 100, "namespaces": 1, "seconds": 0.5}'
    async with serving(admin) as url:
        admin.refused_files = {"part-00001.parquet"}
        with pytest.raises(LoadgenError, match="HTTP 412"):
            await load_by_import(corpus, url, nobody)
        admin.refused_files, admin.posted = set(), []
        loaded = await load_by_import(corpus, url, nobody, resume=True)
    assert (loaded.topics, loaded.resumed) == (100, 1)
    assert [str(each["path"])[-18:] for each in admin.posted] == ["part-00001.parquet"]


async def test_resuming_with_the_state_of_another_load_is_refused(corpus: Path) -> None:
    admin = FakeAdmin()
    admin.answer = 200, '{"topics": 100, "namespaces": 1, "seconds": 0.5}'
    admin.refused_files = {"part-00001.parquet"}
    async with serving(admin) as url:
        with pytest.raises(LoadgenError):
            await load_by_import(corpus, url, nobody)
        with pytest.raises(UsageError, match="is of a load with another way"):
            await load_by_rest(corpus, url, nobody, 4, resume=True)


@given(st.permutations(range(25)), st.integers(0, 25))
@settings(max_examples=40)
def test_the_saved_state_holds_the_first_topic_that_is_not_loaded(
    tmp_path_factory, order, ended
) -> None:
    path = text(tmp_path_factory.mktemp("load"), "persistent://a/b/c")
    state = LoadState(path, "http://x", "rest")
    for number in order[:ended]:
        state.item_done(number)
    assert state.done == min({*range(26)} - {*order[:ended]})
    with suppress(KeyboardInterrupt), state:
        raise KeyboardInterrupt
    assert LoadState(path, "http://x", "rest", resume=True).done == state.done
