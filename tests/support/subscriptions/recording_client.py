"""A client's connection that keeps received commands."""

import proto.PulsarApi_pb2 as pb
from broker.messages.entry import Entry
from broker.messages.metadata import digest_of, parse_metadata
from broker.messages.subscriptions.consumer import Consumer
from limiter.flow.outbound_buffer import OutboundBuffer, WriteBufferMarks
from tests.support.subscriptions.messages import message


class _Frames:
    """Stands for the turn writer: keeps the payload of each message."""

    def __init__(self) -> None:
        self.entries: list[bytes] = []

    def add(self, _: bytes, data: bytes) -> None:
        self.entries.append(data)


class RecordingClient:
    """A connection that records messages and commands.

    Attributes:
        messages: Sent entries.
        commands: Names of all other commands, in order.
    """

    peer = "127.0.0.1:1"

    def __init__(self) -> None:
        self.consumers: dict[int, Consumer] = {}
        self.turn_writer = _Frames()
        self.outbound = OutboundBuffer(WriteBufferMarks(high_bytes=2, low_bytes=1))
        self.sent: list[pb.BaseCommand] = []

    def send(self, command: pb.BaseCommand) -> None:
        self.sent.append(command)

    def send_with_turn(self, command: pb.BaseCommand) -> None:
        self.send(command)

    async def answers_ping(self) -> bool:
        return True

    @property
    def messages(self) -> list[bytes]:
        return self.turn_writer.entries

    @property
    def commands(self) -> list[str]:
        return [pb.BaseCommand.Type.Name(one.type) for one in self.sent]


def entry(payload: bytes, key: str | None = None, count: int = 1) -> Entry:
    """Return an entry of a topic without storage."""
    data = message(payload, key=key, count=count)
    return Entry(0, 0, data, digest_of(parse_metadata(data)))
