import asyncio
import logging
from collections.abc import Awaitable, Callable

import pytest

from client.arguments import log_to
from client.authentication.authentication import AuthenticationToken
from client.client import Client
from client.connection.service_url import ServiceInfo
from client.exceptions import (
    AlreadyClosed,
    InvalidConfiguration,
    InvalidTopicName,
    InvalidUrl,
    OperationNotSupported,
    PulsarException,
)
from client.messages.message_id import MessageId
from limiter.client_memory.memory_limit_controller import MemoryLimitController
from tests.support.clocks.settle import settle, started
from tests.support.peers.byte_broker import ByteBroker

URL = "pulsar://127.0.0.1:1"


class Opened:
    """A producer, reduced to the client's use."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.closed = 0

    async def close(self) -> None:
        self.closed += 1
        if self.error is not None:
            raise self.error


@pytest.mark.parametrize(
    ("arguments", "error", "sentence"),
    [
        ({"io_threads": 2}, OperationNotSupported, "io_threads must be 1: everything runs on the"),
        ({"message_listener_threads": 2}, OperationNotSupported, "_listener_threads must be 1"),
        ({"operation_timeout_seconds": "1"}, InvalidConfiguration, "not '1'"),
        ({"connection_timeout_ms": 0}, InvalidConfiguration, "connection_timeout_ms is a number"),
        ({"concurrent_lookup_requests": 0}, InvalidConfiguration, "from 1 on, not 0"),
        ({"operation_timeout_seconds": None}, InvalidConfiguration, "from 0 on, not None"),
        ({"connection_timeout_ms": None}, InvalidConfiguration, "from 1 on, not None"),
        ({"concurrent_lookup_requests": None}, InvalidConfiguration, "from 1 on, not None"),
        ({"memory_limit_bytes": None}, InvalidConfiguration, "whole number of bytes, .*not None"),
        ({"stats_interval_in_seconds": -1}, InvalidConfiguration, "from 0 on, not -1"),
        ({"authentication": "me"}, InvalidConfiguration, "such as AuthenticationToken, not str"),
        ({"memory_limit_bytes": "64MiB"}, InvalidConfiguration, "whole number of bytes, .*'64MiB'"),
        ({"memory_limit_bytes": -1}, InvalidConfiguration, "a whole number of bytes, .*, not -1"),
        ({"listener_name": 5}, InvalidConfiguration, "listener_name is a str, not 5"),
        ({"logger": "me"}, InvalidConfiguration, "logger is a logging.Logger, not str"),
        ({"tls_validate_hostname": "no"}, InvalidConfiguration, "is True or False, not str"),
        ({"tls_private_key_file_path": "x"}, InvalidConfiguration, "go together: give both"),
    ],
)
def test_invalid_arguments_are_refused_with_a_sentence(arguments, error, sentence) -> None:
    with pytest.raises(error, match=sentence):
        Client(URL, **arguments)


def test_an_invalid_argument_is_a_value_error_like_in_the_official_client() -> None:
    with pytest.raises(ValueError, match=r"service_url is a str such as .*, not 7"):
        Client(7)


def test_an_invalid_service_url_is_refused() -> None:
    with pytest.raises(InvalidUrl, match="'here' is not a service URL"):
        Client("here")


@pytest.mark.parametrize(
    "url",
    ["pulsar://me:secret@h", "pulsar://h,me:se/secret@h", "me:secret@h", "pulsar://:secret@h"],
)
def test_a_service_url_with_credentials_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidUrl, match="credentials are not part of it") as caught:
        Client(url)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "ask",
    [
        lambda client: client.subscribe("t", 5),
        lambda client: client.create_reader("t", MessageId.earliest, subscription_name=5),
        lambda client: client.create_table_view("t", 5),
    ],
)
async def test_a_subscription_name_that_is_no_str_is_refused(
    ask: Callable[[Client], Awaitable[object]],
) -> None:
    async with Client(URL) as client:
        with pytest.raises(InvalidConfiguration, match="subscription_name is a str, not 5"):
            await ask(client)


def test_the_repr_and_service_info_name_the_service_url() -> None:
    token = AuthenticationToken("x")
    client = Client("pulsar+ssl://a:1,b", token)
    assert repr(client) == "<Client of pulsar+ssl://a:1,b>"
    assert client.get_service_info() == ServiceInfo("pulsar+ssl://a:1,b", token)
    assert client.get_service_info().use_tls


async def test_close_closes_every_part_once_and_leaves_no_task(caplog) -> None:
    client = Client(URL)
    good, bad = Opened(), Opened(AlreadyClosed("gone"))
    client._context.parts.update((good, bad))
    await asyncio.gather(client.close(), client.close())
    await client.close()
    assert (good.closed, bad.closed) == (1, 1)
    assert "closing the client: gone" in caplog.text
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_shutdown_closes_without_waiting() -> None:
    client = Client(URL)
    opened = Opened()
    client._context.parts.add(opened)
    client.shutdown()
    before = opened.closed
    await client.close()
    assert (before, opened.closed) == (0, 1)


async def test_a_cancelled_close_continues_in_the_background() -> None:
    client = Client(URL)
    opened = Opened()
    client._context.parts.add(opened)
    closing = asyncio.create_task(client.close())
    await asyncio.sleep(0)
    closing.cancel()
    await settle()
    assert closing.cancelled()
    assert opened.closed == 1


@pytest.mark.parametrize(
    "opening",
    [
        lambda client: client.create_producer("topic"),
        lambda client: client.subscribe("topic", "subscription"),
    ],
)
async def test_a_closed_client_refuses_to_open_producers_and_consumers(opening: object) -> None:
    client = Client(URL)
    await client.close()
    with pytest.raises(AlreadyClosed, match="the client is closed"):
        await opening(client)


async def test_a_part_opened_while_the_client_closes_is_closed() -> None:
    client = Client(URL)
    opened = Opened()

    async def opening() -> Opened:
        return opened

    client.shutdown()
    with pytest.raises(AlreadyClosed):
        await client._kept(opening())
    assert opened.closed == 1
    await client.close()


async def test_closing_fails_a_lookup_that_waits_for_a_connection() -> None:
    async with ByteBroker(answer=None) as broker:
        client = Client(broker.url)
        asking = await started(client.partitions("topic"))
        await broker.connection()
        await client.close()
        with pytest.raises(PulsarException):
            await asking


async def test_close_ends_the_memory_limit_unless_shared() -> None:
    shared = MemoryLimitController(100)
    async with Client(URL, memory_limit_controller=shared) as sharing, Client(URL) as alone:
        pass
    assert sharing.memory is shared
    assert shared.try_reserve(1) is not None
    with pytest.raises(Exception, match="closed"):
        alone.memory.try_reserve(1)


async def test_an_invalid_topic_name_is_refused() -> None:
    async with Client(URL) as client:
        for topic in (7, "a://b", ""):
            with pytest.raises(InvalidTopicName):
                await client.get_topic_partitions(topic)


async def test_log_records_go_to_the_configured_logger() -> None:
    package = Client.__module__.rpartition(".")[0]
    ours, theirs = logging.getLogger(package), logging.getLogger("a program's")
    before = ours.parent, ours.level
    theirs.setLevel(logging.INFO)
    records: list[str] = []
    heard = logging.Handler()
    heard.emit = lambda record: records.append(record.getMessage())
    theirs.addHandler(heard)
    try:
        Client(URL, logger=theirs)
        log_to(ours)
        ours.getChild("connection").info("one line")
        assert records == ["one line"]
    finally:
        ours.parent, _ = before
        ours.setLevel(before[1])
        theirs.removeHandler(heard)
