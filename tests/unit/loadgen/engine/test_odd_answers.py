"""Impossible answers of a server end a request, and never the run."""

import asyncio
from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from loadgen.documents.model import Document
from loadgen.engine.control import Control
from loadgen.engine.rows import Outcome, RequestRow
from loadgen.places.task import Task, TaskPlan
from loadgen.plan.clients import Namespace
from proto.frames import encode_command

Type = pb.BaseCommand
CONNECTED = Type(type=Type.CONNECTED, connected=pb.CommandConnected(server_version="x"))
NO_LIST = b"\x00\x00\x00\x0d\x00\x00\x00\x09\x08\x21\x8a\x02\x04\x08?\x12\xff"
"""The list answering request ?, truncated within a name."""


async def rows_of(*answers: bytes, **group: Any) -> list[RequestRow]:
    """Return the rows of a client whose server gives each read one of the answers."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (encode_command(CONNECTED), *answers):
            await reader.read(1000)
            writer.write(answer.replace(b"?PORT", str(port).encode()))
        await reader.read(1000)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        plan = TaskPlan.share(
            Document.model_validate(
                {
                    "name": "x",
                    "clients": [{"name": "g", "count": 1, "timeout": 9, **group}],
                    "phases": {"measure": 0.1, "drain": 5},
                }
            ),
            [Namespace(name="public/default")],
            service_url=f"pulsar://127.0.0.1:{port}",
            admin_url=f"http://127.0.0.1:{port}",
        )
        result = await Task(plan, Control(lead_seconds=0)).run()
    return result.rows.requests


def looked_up(**fields: Any) -> bytes:
    response = pb.CommandLookupTopicResponse(request_id=1, **fields)
    return encode_command(Type(type=Type.LOOKUP_RESPONSE, lookupTopicResponse=response))


async def test_a_failed_lookup_without_an_error_counts_as_refused() -> None:
    failed = looked_up(response=pb.CommandLookupTopicResponse.Failed)
    (row,) = await rows_of(failed, do="watch")
    assert (row.outcome, row.reason) == (Outcome.REFUSED, "UnknownError: ")


@pytest.mark.parametrize("url", ["", "pulsar://127.0.0.1:99999", f"pulsar://{'a' * 70}:1"])
async def test_a_broker_at_an_invalid_address_counts_as_unreachable(url: str) -> None:
    connect = pb.CommandLookupTopicResponse.Connect
    _, row = await rows_of(looked_up(response=connect, brokerServiceUrl=url), do="watch")
    assert row.outcome is Outcome.UNREACHABLE


async def test_a_malformed_list_marks_the_compared_watch_as_wrong() -> None:
    here = looked_up(
        response=pb.CommandLookupTopicResponse.Connect, brokerServiceUrl="pulsar://127.0.0.1:?PORT"
    )
    told = pb.CommandWatchTopicListSuccess(
        request_id=2, watcher_id=1, topic=["persistent://public/default/t"], topics_hash="h"
    )
    opened = Type(type=Type.WATCH_TOPIC_LIST_SUCCESS, watchTopicListSuccess=told)
    lists = [NO_LIST.replace(b"?", bytes([number])) for number in range(3, 100)]
    rows = await rows_of(here, encode_command(opened), *lists, do="watch")
    assert [each.outcome for each in rows if each.operation == "update"] == [Outcome.WRONG]


async def test_a_topic_creation_cut_by_the_end_of_the_run_counts_as_a_timeout(monkeypatch) -> None:
    async def never(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr("client.admin.topics.Topics.create", never)
    (row,) = await rows_of(do="create-and-delete")
    assert row.outcome is Outcome.TIMEOUT
