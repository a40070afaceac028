"""A connection's last commands are kept, without credentials."""

import proto.PulsarApi_pb2 as pb
from proto.frames import FrameDecoder, encode_command
from server.seeing.connections import COMMANDS, LastCommands
from tests.support.clocks.manual_clock import ManualClock
from tests.support.peers.frames import ping


def test_the_oldest_command_is_dropped_beyond_the_bound() -> None:
    record = LastCommands(ManualClock())
    data = encode_command(ping())
    for _ in range(COMMANDS + 5):
        record.sent([data], len(data), in_a_pipe=False)
    assert len(record.kept) == COMMANDS
    assert record.total == COMMANDS + 5


def test_credentials_are_not_kept() -> None:
    record, decoder = LastCommands(ManualClock()), FrameDecoder()
    connect = pb.CommandConnect(
        client_version="c", auth_data=b"secret", original_auth_data="secret"
    )
    decoder.feed(encode_command(pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect)))
    frame = decoder.next_frame()
    assert frame is not None
    record.received(frame)
    assert "client_version='c'" in record.kept[0].command
    assert "secret" not in record.kept[0].command
