import struct
from pathlib import Path

import google_crc32c
import pytest

from proto import PulsarApi_pb2 as pb
from tests.support.dialogues import wire
from tests.support.dialogues.dialogue import load_dialogues

GOLDEN = Path(__file__).parents[3] / "golden" / "messages" / "dialogues.jsonl"
SEND = {"command": "SEND", "producer_id": 1, "sequence_ids": [4], "batch_of": 3}
IDS = {0: pb.MessageIdData(ledgerId=7, entryId=2)}


def read(data: bytes) -> tuple[pb.BaseCommand, bytes]:
    (length,) = struct.unpack(">I", data[:4])
    assert length == len(data) - 4
    return wire.parse(data[4:])


@pytest.mark.parametrize("bad", [False, True])
def test_a_batch_has_the_payload_of_the_recording_and_a_checksum(bad: bool) -> None:
    command, behind = read(wire.command_bytes({**SEND, "bad_checksum": bad}, {}))
    assert command.send.num_messages == 3
    assert behind[:2] == b"\x0e\x01"
    checksum = int.from_bytes(behind[2:6], "big")
    assert (checksum == google_crc32c.value(behind[6:])) is not bad
    assert behind.endswith(b"\0\0\0\x02\x18\x04m4.0\0\0\0\x02\x18\x04m4.1\0\0\0\x02\x18\x04m4.2")


def test_what_a_message_and_its_command_hold_besides_is_sent() -> None:
    does = {**SEND, "bad_checksum": False, "metadata": {"ordering_key": "YQ=="}}
    command, behind = read(wire.command_bytes({**does, "of_command": {"is_chunk": True}}, {}))
    length = int.from_bytes(behind[6:10], "big")
    metadata = pb.MessageMetadata.FromString(behind[10 : 10 + length])
    assert (command.send.is_chunk, metadata.ordering_key) == (True, b"a")


def test_fields_that_are_messages_themselves_are_sent() -> None:
    does = {"command": "SUBSCRIBE", "topic": "t", "subscription": "s", "subType": 3}
    does |= {"consumer_id": 1, "request_id": 2}
    ranges = {"keySharedMode": "STICKY", "hashRanges": [{"start": 1, "end": 2}]}
    command, _ = read(wire.command_bytes({**does, "keySharedMeta": ranges}, {}))
    (found,) = command.subscribe.keySharedMeta.hashRanges
    assert (found.start, found.end) == (1, 2)


def test_an_acknowledgement_and_a_redelivery_name_several_messages() -> None:
    for name, body in (
        ("ACK", "ack.message_id"),
        ("REDELIVER_UNACKNOWLEDGED_MESSAGES", "redeliverUnacknowledgedMessages.message_ids"),
    ):
        does = {"command": name, "consumer_id": 1, "messages": ["m0", "m0"]}
        if name == "ACK":
            does["ack_type"] = "Individual"
        command, _ = read(wire.command_bytes(does, IDS))
        outer, inner = body.split(".")
        assert [one.entryId for one in getattr(getattr(command, outer), inner)] == [2, 2]


def test_messages_are_named_by_their_sequence_ids() -> None:
    does = {"command": "SEEK", "consumer_id": 1, "request_id": 3, "message": "m0"}
    command, _ = read(wire.command_bytes(does, IDS))
    assert (command.seek.message_id.ledgerId, command.seek.message_id.entryId) == (7, 2)


def test_a_message_that_the_topic_did_not_take_cannot_be_named() -> None:
    with pytest.raises(KeyError):
        wire.command_bytes({"command": "ACK", "consumer_id": 1, "message": "m9"}, IDS)


def test_an_entry_of_minus_one_is_seen_as_it_was_recorded() -> None:
    command = pb.BaseCommand(type=pb.BaseCommand.GET_LAST_MESSAGE_ID_RESPONSE)
    command.getLastMessageIdResponse.last_message_id.entryId = (1 << 64) - 1
    seen = wire.seen(0, command, b"")
    assert seen["entry_id"] == wire.NO_ENTRY_RECORDED
    assert seen["has_mark_delete_position"] is False


def test_every_recorded_command_can_be_sent() -> None:
    ids = {number: pb.MessageIdData(ledgerId=1, entryId=number) for number in range(64)}
    sent = [
        wire.command_bytes(step.does, ids)
        for dialogue in load_dialogues(GOLDEN)
        for step in dialogue.steps
        if not step.is_reset
    ]
    assert all(sent)
