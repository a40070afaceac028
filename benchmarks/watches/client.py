"""The watching clients, in a process of their own, which check all updates.

``python -m benchmarks.watches.client`` takes commands; see ``controlled_process``. Updates are
stored, and checked only on request, so that checks do not delay the measured side.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, cast

import proto.PulsarApi_pb2 as pb
from benchmarks.command_lines import answer_commands
from benchmarks.processes import address_of
from benchmarks.watches.names import FirstStates, WatchedNames, WatchError
from loadgen.engine.connecting import raise_open_file_limit
from loadgen.engine.frames import PONG, connect_frame
from proto.frames import encode_command
from server.loop import run

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_PROBLEMS = 5
_LENGTH_BYTES = 4
SUCCESS, UPDATE = pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS, pb.BaseCommand.WATCH_TOPIC_UPDATE


class Frames:
    """A decoder that splits the bytes of a connection into commands."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, chunk: bytes) -> list[pb.BaseCommand]:
        """Add received bytes; return the commands that become complete."""
        data, commands, start = self._data, [], 0
        data += chunk
        while len(data) - start >= _LENGTH_BYTES:
            end = start + _LENGTH_BYTES + int.from_bytes(data[start : start + _LENGTH_BYTES], "big")
            if end > len(data):
                break
            command = bytes(data[start + 2 * _LENGTH_BYTES : end])
            commands.append(pb.BaseCommand.FromString(command))
            start = end
        del data[:start]
        return commands


class Watching:
    """All watches of this process, with their connections, and the commands about them.

    The mutable state is each watcher's names, its unchecked updates, and the errors.
    """

    def __init__(self) -> None:
        self.peers: list[WatchingPeer] = []
        self.states: dict[tuple[WatchingPeer, int], WatchedNames] = {}
        self.updates: list[tuple[WatchingPeer, pb.CommandWatchTopicUpdate]] = []
        self.updates_seen = 0
        self.problems: list[str] = []
        self.changed = asyncio.Event()
        self.first = FirstStates()
        self._order: list[tuple[WatchingPeer, int]] = []

    # -- commands -----------------------------------------------------------------------------

    async def watch(
        self, url: str, namespace: str, patterns: Sequence[str], connections: int, at_once: int
    ) -> dict[str, Any]:
        """Open connections and watches; return when all watches have been answered.

        Args:
            url: The service URL of the broker.
            namespace: The namespace to watch.
            patterns: The topics pattern of each watch.
            connections: Number of connections to spread the watches over.
            at_once: The largest number of unanswered watch requests.
        """
        await self._open(url, connections)
        began = time.perf_counter()
        for number, pattern in enumerate(patterns):
            await self._until(lambda done=number - at_once: len(self.states) > done)
            peer, watcher_id = self.peers[number % connections], number // connections
            self._order.append((peer, watcher_id))
            peer.watch(number, watcher_id, namespace, pattern)
        await self._until(lambda: len(self.states) == len(patterns))
        return {"seconds": time.perf_counter() - began, "problems": self.problems}

    async def expect(self, updates: int) -> dict[str, Any]:
        """Wait until ``updates`` further updates have arrived since the last call."""
        await self._until(lambda: self.updates_seen >= updates)
        self.updates_seen -= updates
        return {"left": self.updates_seen, "problems": self.problems}

    async def verify(self) -> dict[str, Any]:
        """Check every stored update; return the number and hash of each watcher's names."""
        updates, self.updates = self.updates, []
        for peer, update in updates:
            key = (peer, update.watcher_id)
            try:
                self.states[key] = self.states[key].after(
                    update.new_topics, update.deleted_topics, update.topics_hash
                )
            except (WatchError, KeyError) as error:
                self._problem(f"watcher {update.watcher_id} of {peer.name}: {error}")
        known = [self.states[key] for key in self._order]
        return {
            "updates": len(updates),
            "problems": self.problems,
            "watchers": [[len(state.names), state.hash] for state in known],
        }

    async def sink(self, url: str, connections: int) -> dict[str, Any]:
        """Open connections that read all data and discard it."""
        loop, address = asyncio.get_running_loop(), address_of(url)
        for _ in range(connections):
            await loop.create_connection(asyncio.Protocol, *address)
        return {}

    # -- what comes ---------------------------------------------------------------------------

    def received(self, peer: WatchingPeer, command: pb.BaseCommand) -> None:
        """Process a command that a connection received."""
        if command.type == UPDATE:
            self.updates.append((peer, command.watchTopicUpdate))
            self.updates_seen += 1
        elif command.type == SUCCESS:
            self._succeeded(peer, command.watchTopicListSuccess)
        elif command.type == pb.BaseCommand.PING:
            peer.send(PONG)
        elif command.type == pb.BaseCommand.CONNECTED:
            peer.ready.set_result(None)
        else:
            self._problem(f"{peer.name} was told: {command.error.message or command.type}")
        self.changed.set()

    def _succeeded(self, peer: WatchingPeer, answer: pb.CommandWatchTopicListSuccess) -> None:
        key = (peer, answer.watcher_id)
        try:
            self.states[key] = self.first.of(answer.topic, answer.topics_hash)
        except WatchError as error:
            self._problem(f"watcher {answer.watcher_id} of {peer.name}: {error}")

    def lost(self, peer: WatchingPeer) -> None:
        """Report that the server closed a connection, which is an error."""
        self._problem(f"{peer.name} was closed by the server")
        self.changed.set()

    def _problem(self, sentence: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(sentence)

    async def _open(self, url: str, connections: int) -> None:
        loop, address = asyncio.get_running_loop(), address_of(url)
        for _ in range(connections):
            _, peer = await loop.create_connection(lambda: WatchingPeer(self), *address)
            self.peers.append(peer)
            await peer.ready

    async def _until(self, condition: Any) -> None:  # noqa: ANN401
        while not condition() and not self.problems:
            self.changed.clear()
            await self.changed.wait()


class WatchingPeer(asyncio.Protocol):
    """A client's connection, which carries some of the watches."""

    def __init__(self, watching: Watching) -> None:
        self._watching = watching
        self._frames = Frames()
        self._transport: asyncio.Transport | None = None
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.name = ""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the handshake by sending CONNECT."""
        self._transport = cast("asyncio.Transport", transport)
        self.name = f"port {transport.get_extra_info('sockname')[1]}"
        self.send(connect_frame())

    def data_received(self, data: bytes) -> None:
        """Pass on the commands that received bytes complete."""
        for command in self._frames.feed(data):
            self._watching.received(self, command)

    def connection_lost(self, exc: Exception | None) -> None:
        """Report that the connection is lost."""
        self._watching.lost(self)

    def watch(self, request_id: int, watcher_id: int, namespace: str, pattern: str) -> None:
        """Request a watch of a namespace with a topics pattern."""
        request = pb.CommandWatchTopicList(
            request_id=request_id,
            watcher_id=watcher_id,
            namespace=namespace,
            topics_pattern=pattern,
        )
        kind = pb.BaseCommand.WATCH_TOPIC_LIST
        self.send(encode_command(pb.BaseCommand(type=kind, watchTopicList=request)))

    def send(self, frame: bytes) -> None:
        """Send a frame on the connection."""
        assert self._transport is not None
        self._transport.write(frame)


async def main() -> None:
    """Answer commands until standard input ends."""
    raise_open_file_limit(4_096)
    watching = Watching()
    names = ("watch", "sink", "expect", "verify")
    await answer_commands({}, {name: getattr(watching, name) for name in names})


if __name__ == "__main__":
    run(main())
