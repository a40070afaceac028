"""A server that answers CONNECT and listings, and misbehaves on command.

Without memory limits or permits: for load generator tests where a real broker would be slower to
set up or could not misbehave.
"""

import argparse
import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import uvloop

import proto.PulsarApi_pb2 as pb
from proto.errors import RemoteProtocolError
from proto.frames import encode_command
from proto.parsing.parser import parse_command
from proto.parsing.varint import encode_varint
from proto.topic_hash import topics_hash


@dataclass
class StandInBroker:
    """A broker with configured answers.

    Attributes:
        names: Topic names of each namespace.
        refuse: Namespaces with refused listings: error code and message.
        lie: Namespaces whose listing lacks its last name but has the whole list's hash.
        hang_up: Namespaces whose request closes the connection.
        ignore: Namespaces without answers.
        ping_first: Whether a PING precedes each answer.
        requests: In order.
        pongs: Number of PONGs.
        peers: Addresses of connections.
    """

    names: dict[str, list[str]] = field(default_factory=dict)
    refuse: dict[str, tuple[int, str]] = field(default_factory=dict)
    lie: frozenset[str] = frozenset()
    hang_up: frozenset[str] = frozenset()
    ignore: frozenset[str] = frozenset()
    ping_first: bool = False
    requests: list[str] = field(default_factory=list)
    pongs: int = 0
    peers: list[str] = field(default_factory=list)
    _bodies: dict[str, bytes] = field(default_factory=dict)

    async def serve(self, host: str = "127.0.0.1", port: int = 0) -> asyncio.Server:
        return await asyncio.start_server(self._converse, host, port, backlog=1024)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.peers.append(writer.get_extra_info("peername")[0])
        writer.transport.set_write_buffer_limits(high=0)
        try:
            while True:
                total = int.from_bytes(await reader.readexactly(4), "big")
                command = parse_command((await reader.readexactly(total))[4:])
                if not await self._answer(command, writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError, RemoteProtocolError):
            pass
        finally:
            writer.close()

    async def _answer(self, command: pb.BaseCommand, writer: asyncio.StreamWriter) -> bool:
        if command.type == pb.BaseCommand.CONNECT:
            writer.write(_connected())
        elif command.type == pb.BaseCommand.PONG:
            self.pongs += 1
        elif command.type == pb.BaseCommand.GET_TOPICS_OF_NAMESPACE:
            request = command.getTopicsOfNamespace
            self.requests.append(request.namespace)
            if request.namespace in self.hang_up:
                return False
            if self.ping_first:
                writer.write(_ping())
            if request.namespace not in self.ignore:
                writer.write(self.answer(request))
        await writer.drain()
        return True

    def answer(self, request: pb.CommandGetTopicsOfNamespace) -> bytes:
        if request.namespace in self.refuse:
            code, message = self.refuse[request.namespace]
            error = pb.CommandError(request_id=request.request_id, error=code, message=message)
            return encode_command(pb.BaseCommand(type=pb.BaseCommand.ERROR, error=error))
        if request.namespace not in self._bodies:
            self._bodies[request.namespace] = self._body(request.namespace)
        return listing_frame(request.request_id, self._bodies[request.namespace])

    def _body(self, namespace: str) -> bytes:
        names = self.names.get(namespace, [])
        listed = names[:-1] if namespace in self.lie else names
        return listing_body(listed, topics_hash(names))


def listing_body(names: list[str], hash_text: str | None = None) -> bytes:
    """Return a listing behind its request id, in Pulsar's form."""
    response = pb.CommandGetTopicsOfNamespaceResponse(
        request_id=1,
        topics=names,
        filtered=False,
        topics_hash=topics_hash(names) if hash_text is None else hash_text,
        changed=True,
    )
    return response.SerializeToString()[2:]


def listing_frame(request_id: int, body: bytes) -> bytes:
    """Return the frame of a listing with a given body."""
    prefix = pb.CommandGetTopicsOfNamespaceResponse(request_id=request_id)
    response = prefix.SerializePartialToString() + body
    size = encode_varint(len(response))
    command = b"\x08\x21\x8a\x02" + size + response
    return (len(command) + 4).to_bytes(4, "big") + len(command).to_bytes(4, "big") + command


def _connected() -> bytes:
    connected = pb.CommandConnected(server_version="stand-in", protocol_version=20)
    return encode_command(pb.BaseCommand(type=pb.BaseCommand.CONNECTED, connected=connected))


def _ping() -> bytes:
    return encode_command(pb.BaseCommand(type=pb.BaseCommand.PING, ping=pb.CommandPing()))


@contextmanager
def running(broker: StandInBroker, port: int = 0) -> Iterator[str]:
    """Serve from a thread with its own loop and yield the service URL."""
    ready, urls = threading.Event(), []
    loop = uvloop.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        server = await broker.serve(port=port)
        urls.append(f"pulsar://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        ready.set()
        await stop.wait()
        server.close()

    def thread() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    worker = threading.Thread(target=thread, name="stand-in broker")
    worker.start()
    ready.wait()
    try:
        yield urls[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        worker.join()


def topic_names(namespace: str, topics: int, name_bytes: int = 0) -> list[str]:
    """Return full topic names of a namespace, padded to a length."""
    start = f"persistent://{namespace}/topic-"
    return [f"{start}{index:06d}".ljust(name_bytes, "x") for index in range(topics)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--namespaces", type=int, default=100)
    parser.add_argument("--topics", type=int, default=10_000)
    parser.add_argument("--name-bytes", type=int, default=100)
    options = parser.parse_args()
    spaces = [f"load/ns-{index}" for index in range(options.namespaces)]
    names = {each: topic_names(each, options.topics, options.name_bytes) for each in spaces}
    with running(StandInBroker(names), options.port) as url:
        print(f"READY broker {url}", flush=True)  # noqa: T201
        threading.Event().wait()


if __name__ == "__main__":
    main()
