"""A non-reading client notices that the server has closed the connection."""

import asyncio
import socket
import struct

import pytest

import proto.PulsarApi_pb2 as pb
from loadgen.documents.model import Document
from loadgen.engine.control import Control
from loadgen.engine.rows import Outcome
from loadgen.places.task import Task, TaskPlan
from loadgen.plan.clients import Namespace
from proto.frames import encode_command

CONNECTED = encode_command(
    pb.BaseCommand(type=pb.BaseCommand.CONNECTED, connected=pb.CommandConnected(server_version="x"))
)
MORE_THAN_KERNELS_TAKE = bytes(16 << 20)
RESET = struct.pack("ii", 1, 0)


@pytest.mark.parametrize("host", ["127.0.0.1", "::"])
@pytest.mark.parametrize("resets", [True, False])
async def test_a_close_by_the_server_is_recorded_for_a_client_that_never_reads(
    host, *, resets
) -> None:
    # Given a server that closes a connection with an unread answer
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1000)
        writer.write(CONNECTED)
        await reader.read(1000)
        accepted = writer.get_extra_info("socket")
        answered = accepted.dup()
        writer.transport.pause_reading()
        answered.send(MORE_THAN_KERNELS_TAKE)
        await asyncio.sleep(0.5)
        if resets:
            answered.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        answered.close()
        writer.transport.abort()

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, 0), family=family, dualstack_ipv6=host == "::")
    server = await asyncio.start_server(serve, sock=listening)
    port = listening.getsockname()[1]
    plan = TaskPlan.share(
        Document.model_validate(
            {
                "name": "x",
                "clients": [
                    {
                        "name": "deaf",
                        "do": "list",
                        "count": 1,
                        "read": {"never": True},
                        "timeout": 30,
                    }
                ],
                "phases": {"measure": 20, "drain": 0.1},
            }
        ),
        [Namespace(name="public/default")],
        service_url=f"pulsar://127.0.0.1:{port}",
    )
    async with server:
        result = await Task(plan, Control(lead_seconds=0)).run()
    lost = [each for each in result.rows.events if each.what == "connection-lost"]
    assert [each.text for each in lost] == ["closed by the server"]
    assert 0.4 < lost[0].at < 10
    assert [row.outcome for row in result.rows.requests] == [Outcome.DISCONNECTED]
