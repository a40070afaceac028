from __future__ import annotations

import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from loadgen.commands.load import Loaded, load, load_by_import, load_by_rest
from loadgen.corpus.corpus import write_corpus
from loadgen.corpus.executors import in_this_process
from loadgen.corpus.source import TopicToCreate, count_names, read_topics
from loadgen.corpus.topic_plan import TopicPlan
from loadgen.errors import ExitCode, LoadgenError, UsageError
from proto.names import TopicName

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

PLAN = TopicPlan(200, 2, seed=7)


class FakeAdmin:
    """Answers the admin API; remembers what it was sent, and refuses what it is told to refuse."""

    def __init__(self) -> None:
        self.put: dict[str, object] = {}
        self.posted: list[object] = []
        self.calls = self.most_calls = 0
        self.answer: tuple[int, str] = (404, "")

    async def handle(self, request: web.Request) -> web.Response:
        if request.path == "/admin/v2/clusters":
            return web.json_response(["one", "global"])
        if request.method == "POST":
            self.posted.append(await request.json())
            return web.Response(status=self.answer[0], text=self.answer[1])
        if request.path.endswith("/bad"):
            return web.json_response({"reason": "Not this one"}, status=412)
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


def text(tmp_path: Path, *names: str) -> Path:
    path = tmp_path / "names.txt"
    path.write_text("\n".join(names) + "\n")
    return path


async def test_rest_creates_every_topic_once_with_its_partitions(corpus: Path) -> None:
    # Given
    admin = FakeAdmin()
    # When
    async with serving(admin) as url:
        loaded = await load_by_rest(corpus, url, 4)
    # Then
    assert (loaded.topics, loaded.namespaces, loaded.existing) == (200, 2, 0)
    tenants = [body for path, body in admin.put.items() if "/tenants/" in path]
    assert all(body == {"adminRoles": [], "allowedClusters": ["one"]} for body in tenants)
    created = {path: body for path, body in admin.put.items() if "/persistent/" in path}
    partitions = sum(body["partitions"] for path, body in created.items()
                     if path.endswith("/partitions"))  # fmt: skip
    plain = sum(1 for path in created if not path.endswith("/partitions"))
    assert partitions + plain == 200


async def test_rest_keeps_to_its_bound_of_calls(corpus: Path) -> None:
    # Given
    admin = FakeAdmin()
    # When
    async with serving(admin) as url:
        await load_by_rest(corpus, url, 3)
    # Then
    assert 1 <= admin.most_calls <= 3


async def test_what_exists_is_as_good_as_created(corpus: Path) -> None:
    # Given
    admin = FakeAdmin()
    # When
    async with serving(admin) as url:
        first = await load_by_rest(corpus, url, 4)
        again = await load_by_rest(corpus, url, 4)
    # Then
    assert again.topics == first.topics
    assert again.existing == len([path for path in admin.put if "/persistent/" in path])


async def test_the_servers_reason_reaches_the_user(tmp_path: Path) -> None:
    # Given
    path = text(tmp_path, "persistent://a/b/good", "persistent://a/b/bad")
    # When / Then
    async with serving(FakeAdmin()) as url:
        with pytest.raises(LoadgenError, match="refused with HTTP 412: Not this one"):
            await load_by_rest(path, url, 2)


async def test_import_reports_what_the_server_says(corpus: Path) -> None:
    # Given
    admin = FakeAdmin()
    admin.answer = 200, '{"topics": 200, "namespaces": 2, "seconds": 0.5}'
    # When
    async with serving(admin) as url:
        loaded = await load_by_import(corpus, url, 200)
    # Then
    assert (loaded.topics, loaded.namespaces, loaded.seconds) == (200, 2, 0.5)
    assert admin.posted == [{"path": str(corpus)}]


@pytest.mark.parametrize(
    ("status", "body", "said", "exit_code"),
    [
        (404, "<html>", "add --rest", ExitCode.INTERNAL),
        (404, '{"reason": "no such path"}', "HTTP 404: no such path", ExitCode.INTERNAL),
        (500, "", "HTTP 500: the server does not serve", ExitCode.INTERNAL),
        (200, "hello", "is not what the admin REST answers", ExitCode.INTERNAL),
        (200, "{}", "is no import result", ExitCode.INTERNAL),
        (200, '{"topics": 1, "namespaces": 2, "seconds": 1}', "holds 200", ExitCode.CORRECTNESS),
    ],
)
async def test_an_import_that_failed_is_one_sentence(
    corpus: Path, status: int, body: str, said: str, exit_code: ExitCode
) -> None:
    # Given
    admin = FakeAdmin()
    admin.answer = status, body
    # When
    async with serving(admin) as url:
        with pytest.raises(LoadgenError, match=said) as caught:
            await load_by_import(corpus, url, 200)
    # Then
    assert caught.value.exit_code == exit_code


@pytest.mark.parametrize("rest", [False, True])
def test_a_server_that_is_not_there_is_one_sentence(corpus: Path, rest: bool) -> None:
    with pytest.raises(LoadgenError, match="cannot be reached"):
        load(corpus, "http://127.0.0.1:1", rest=rest)


@pytest.mark.parametrize("rest", [False, True])
def test_an_address_that_is_none_is_one_sentence(corpus: Path, rest: bool) -> None:
    with pytest.raises(LoadgenError, match="is a broker's binary port"):
        load(corpus, "pulsar://127.0.0.1:6650", rest=rest)


def test_another_cluster_needs_the_confirmation(corpus: Path) -> None:
    with pytest.raises(UsageError, match="--yes-this-is-my-cluster"):
        load(corpus, "http://10.0.0.1:8080")


def test_what_does_not_exist_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="does not exist"):
        load(tmp_path / "gone")


def test_partitions_in_a_list_of_names_make_one_topic(tmp_path: Path) -> None:
    # Given
    path = text(tmp_path, "persistent://a/b/c-partition-0", "", "persistent://a/b/c-partition-2",
                "non-persistent://a/b/d")  # fmt: skip
    # When / Then
    assert list(read_topics(path)) == [
        TopicToCreate(TopicName.parse("persistent://a/b/c"), 3),
        TopicToCreate(TopicName.parse("non-persistent://a/b/d"), 0),
    ]


def test_a_single_file_of_a_corpus_can_be_loaded(corpus: Path) -> None:
    # Given
    file = min(corpus.glob("*.parquet"))
    # When
    names = sum(max(topic.partitions, 1) for topic in read_topics(file))
    # Then
    assert names == count_names(file) == 100


@pytest.mark.parametrize(
    "name", ["orders", "persistent://a/b", "persistent://a/b/c/d/e", "x://a/b/c"]
)
def test_a_line_that_is_no_topic_name_is_named(tmp_path: Path, name: str) -> None:
    # Given
    path = text(tmp_path, "persistent://a/b/c", name)
    # When / Then
    with pytest.raises(UsageError, match=f"line 2: '{name}' is not a full topic name"):
        read_topics(path)


def test_all_invalid_lines_are_named_before_anything_is_created(tmp_path: Path) -> None:
    # Given
    lines = [
        "\ufeff# mine",
        '"persistent://a/b/c"',
        "",
        "one",
        "persistent://a/b/x-partition-100000",
    ]
    path = text(tmp_path, *lines)
    # When
    with pytest.raises(UsageError) as caught:
        read_topics(path)
    # Then
    assert str(caught.value).splitlines()[:3] == [
        f"{path}: 2 of 3 topics are invalid",
        "  line 4: 'one' is not a full topic name; expected persistent://tenant/namespace/topic",
        "  line 5: 'persistent://a/b/x-partition-100000' is partition 100000; a topic has at most "
        "100,000",
    ]


def test_a_list_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no topic"):
        read_topics(text(tmp_path, "# mine", ""))


def test_names_that_are_not_utf8_are_invalid(tmp_path: Path, corpus: Path) -> None:
    # Given
    (tmp_path / "names").write_bytes(b"persistent://a/b/c\ncaf\xe9\n")
    file = min(corpus.glob("*.parquet"))
    rows = pq.read_table(file)
    names = rows["topic"].cast(pa.binary()).to_pylist()
    odd = pa.array([b"caf\xe9", *names[1:]], pa.binary()).view(pa.string())
    pq.write_table(rows.set_column(rows.column_names.index("topic"), "topic", odd), file)
    # When / Then
    for path, place in ((tmp_path / "names", "line 2"), (file, "row 1")):
        with pytest.raises(UsageError) as caught:
            read_topics(path)
        assert f"  {place}: b'caf\\xe9' is not UTF-8" in str(caught.value)


async def test_invalid_topics_can_be_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given
    admin, path = FakeAdmin(), text(tmp_path, "one", "persistent://a/b/c")
    # When
    async with serving(admin) as url:
        loaded = await load_by_rest(path, url, 2, skip_invalid=True)
    # Then
    assert (loaded.topics, loaded.skipped) == (1, 1)
    assert "line 1: 'one' is not a full topic name" in capsys.readouterr().err


async def test_what_an_import_left_out_is_part_of_what_a_corpus_holds(corpus: Path) -> None:
    # Given
    admin = FakeAdmin()
    admin.answer = 200, '{"topics": 198, "namespaces": 2, "seconds": 0.5, "skipped": 2}'
    # When
    async with serving(admin) as url:
        loaded = await load_by_import(corpus, url, 200, skip_invalid=True)
    # Then
    assert (loaded.topics, loaded.skipped) == (198, 2)
    assert admin.posted == [{"path": str(corpus), "skipInvalid": True}]


@pytest.mark.parametrize("skip_invalid", [False, True])
@pytest.mark.parametrize(("rest", "way"), [(False, "load_by_import"), (True, "load_by_rest")])
def test_that_invalid_topics_may_be_left_out_is_passed_on(
    corpus: Path, monkeypatch: pytest.MonkeyPatch, rest: bool, way: str, skip_invalid: bool
) -> None:
    # Given
    told: list[bool] = []

    async def loading(*_: object, skip_invalid: bool = False) -> Loaded:
        told.append(skip_invalid)
        return Loaded(200, 2, 0.5)

    monkeypatch.setattr(f"loadgen.commands.load.{way}", loading)
    # When
    load(corpus, "http://127.0.0.1:1", rest=rest, skip_invalid=skip_invalid)
    # Then
    assert told == [skip_invalid]


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    # Given
    path = tmp_path / "x"
    path.write_bytes(b"\xff\xfe\x00")
    # When / Then
    with pytest.raises(UsageError, match="neither Parquet nor UTF-8"):
        list(read_topics(path))
