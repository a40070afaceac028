"""Seed frames: a complete frame of each type, and a frame with a payload."""

import proto.PulsarApi_pb2 as pb
from proto.frames import encode_payload_command
from tests.support.peers.frames import frame
from tests.support.processes.commands import TYPES, complete_command


def frame_seeds() -> list[bytes]:
    each = [frame(complete_command(kind)) for kind in TYPES]
    send = pb.BaseCommand(
        type=pb.BaseCommand.SEND, send=pb.CommandSend(producer_id=1, sequence_id=2)
    )
    metadata = pb.MessageMetadata(producer_name="p", sequence_id=2, publish_time=3)
    message = encode_payload_command(send, metadata.SerializeToString(), b"payload")
    return [*each, message, b"".join(each[:5]), b"".join(each[5:])]
