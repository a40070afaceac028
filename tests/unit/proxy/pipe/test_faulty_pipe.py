"""Faults of piped clients: raw bytes without faults, decoded frames with faults."""

import pytest

import proto.PulsarApi_pb2 as pb
from proto.frames import Frame, encode_command, encode_payload_command
from proxy.pipe.faulty_pipe import MAX_SAID, MAX_TOPICS, PipeClient, pipe_with_faults
from proxy.pipe.leg import PipeLeg
from server.faults.fault import Fault
from server.faults.registry import FaultRegistry
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle
from tests.support.peers.memory_transport import MemoryTransport
from tests.support.processes.commands import (
    TYPES,
    complete_command,
    split_commands,
    type_name,
)

Type = pb.BaseCommand
LOOKUP, PING = (encode_command(complete_command(kind)) for kind in (Type.LOOKUP, Type.PING))
DROP = {"action": "drop"}


class Pipe:
    """A pipe between two peers that read everything."""

    def __init__(self, largest: int = 5_242_880) -> None:
        self.registry, self.clock = FaultRegistry(), ManualClock()
        self.legs = PipeLeg(), PipeLeg()
        self.client, self.broker = (
            MemoryTransport(leg, reads_at_once=True).connect() for leg in self.legs
        )
        client, broker = self.legs
        client.other, broker.other = broker, client
        for leg in self.legs:
            leg.intake.parks = False
            leg.frame_received = lambda frame, leg=leg: leg.takes_frame(frame)  # type: ignore[method-assign]
        greeting = pb.CommandConnected(max_message_size=largest)
        pipe_with_faults(client, broker, greeting, "a client", self.registry, self.clock)

    def set(self, do: dict[str, object], **more: object) -> str:
        return self.registry.set(Fault.of({"do": do, **more})).fault_id

    def passed(self) -> bytes:
        """Return the bytes sent to the broker since the last call."""
        return self._taken(self.broker)

    def answered(self) -> bytes:
        """Return the bytes sent to the client since the last call."""
        return self._taken(self.client)

    def _taken(self, transport: MemoryTransport) -> bytes:
        taken = bytes(transport.received)
        transport.received.clear()
        return taken

    def reads_frames(self) -> bool:
        return self.legs[0]._raw is None


async def test_without_a_fault_bytes_are_copied_without_reading_frames() -> None:
    pipe = Pipe()
    for byte in LOOKUP[:-1]:
        pipe.client.peer_sends(bytes([byte]))
    assert pipe.passed() == LOOKUP[:-1]
    assert not pipe.reads_frames()


@pytest.mark.parametrize("cut", range(len(LOOKUP) + 1))
async def test_a_fault_set_within_a_frame_acts_from_the_next_frame(cut: int) -> None:
    pipe = Pipe()
    pipe.client.peer_sends(PING + LOOKUP[:cut])
    pipe.set(DROP, on=["LOOKUP"])
    pipe.client.peer_sends(LOOKUP[cut:] + PING + LOOKUP + PING)
    assert pipe.passed() == PING + (LOOKUP if cut else b"") + PING + PING


async def test_once_the_fault_is_cleared_the_pipe_copies_bytes_again() -> None:
    pipe = Pipe()
    fault = pipe.set(DROP, on=["LOOKUP"])
    pipe.client.peer_sends(LOOKUP + PING[:3])
    assert pipe.reads_frames()
    pipe.registry.clear(fault)
    pipe.client.peer_sends(PING[3:] + LOOKUP[:7])
    assert pipe.passed() == PING + LOOKUP[:7]
    assert not pipe.reads_frames()


async def test_a_pipe_that_no_fault_matches_reads_no_frames() -> None:
    pipe = Pipe()
    pipe.set(DROP, where={"clientVersion": "another*"})
    pipe.client.peer_sends(LOOKUP)
    assert pipe.passed() == LOOKUP
    assert not pipe.reads_frames()


@pytest.mark.parametrize("kind", TYPES, ids=type_name)
async def test_each_command_in_either_direction_can_be_dropped_delayed_or_close_the_pipe(
    kind,
) -> None:
    for direction in ("received", "sent"):
        command = encode_command(complete_command(kind))
        fault = {"on": [type_name(kind)], "direction": direction, "when": {"times": 1}}
        pipe = Pipe()
        sender = pipe.client if direction == "received" else pipe.broker
        taken = pipe.passed if direction == "received" else pipe.answered
        # A frame is dropped
        pipe.set(DROP, **fault)
        sender.peer_sends(command + PING)
        assert taken() == PING
        # A frame is late
        pipe.set({"action": "delay", "delayMs": 1_000}, **fault)
        sender.peer_sends(command)
        assert taken() == b""
        pipe.clock.advance(1)
        await settle()
        assert taken() == command
        # A frame ends the connection
        pipe.set({"action": "disconnect"}, **fault)
        sender.peer_sends(command)
        await settle()
        assert taken() == b""
        assert pipe.client.is_closing()


async def test_an_error_fault_answers_instead_of_the_broker() -> None:
    pipe = Pipe()
    pipe.set({"action": "error", "error": "ServiceNotReady"}, on=["LOOKUP"])
    pipe.client.peer_sends(LOOKUP)
    assert pipe.passed() == b""
    answer = pb.BaseCommand.FromString(pipe.answered()[8:])
    assert answer.lookupTopicResponse.error == pb.ServiceNotReady


async def test_a_producers_command_matches_a_fault_by_the_topic_of_the_producer() -> None:
    pipe = Pipe()
    pipe.set({"action": "closeProducer"}, on=["SEND"], where={"topic": "*/orders"})
    topic = "persistent://public/default/orders"
    for number, name in ((1, topic), (2, f"{topic}-2")):
        asked = pb.CommandProducer(topic=name, producer_id=number, request_id=number)
        pipe.client.peer_sends(encode_command(Type(type=Type.PRODUCER, producer=asked)))
    for number in (1, 2, 3):
        send = pb.CommandSend(producer_id=number, sequence_id=0)
        pipe.client.peer_sends(encode_command(Type(type=Type.SEND, send=send)))
    answer = pb.BaseCommand.FromString(pipe.answered()[8:])
    assert answer.close_producer.producer_id == 1


@pytest.mark.parametrize("cut", [0, 5])
async def test_delayed_frames_pass_before_bytes_are_copied_again(cut: int) -> None:
    pipe = Pipe()
    fault = pipe.set({"action": "delay", "delayMs": 1_000}, on=["LOOKUP"])
    pipe.client.peer_sends(LOOKUP * 3 + PING[:cut])
    pipe.registry.clear(fault)
    await settle()
    pipe.client.peer_sends(PING[cut:])
    assert pipe.passed() == LOOKUP * 3 + PING
    assert not pipe.reads_frames()


async def test_a_message_within_the_brokers_maximum_message_size_passes() -> None:
    pipe = Pipe(largest=6_000_000)
    pipe.set(DROP, on=["LOOKUP"])
    send = Type(type=Type.SEND, send=pb.CommandSend(producer_id=1, sequence_id=0))
    frame = encode_payload_command(send, b"metadata", bytes(5_500_000))
    pipe.client.peer_sends(frame)
    await settle()  # The write takes more than one turn.
    assert pipe.passed() == frame


async def test_the_oldest_producer_is_forgotten_above_the_limit_of_tracked_producers() -> None:
    client = PipeClient(PipeLeg(), PipeLeg(), "")
    for number in range(MAX_TOPICS + 1):
        asked = pb.CommandProducer(topic=f"t-{number}", producer_id=number, request_id=number)
        body = encode_command(Type(type=Type.PRODUCER, producer=asked))[4:]
        client.note(Frame(len(body), (memoryview(body),)))
    assert [client.topic_of_producer(one) for one in (0, 1)] == [
        "",
        "persistent://public/default/t-1",
    ]


async def test_a_brokers_command_matches_a_fault_by_the_topic_of_the_clients_producer() -> None:
    pipe = Pipe()
    pipe.set(DROP, on=["SEND_RECEIPT"], direction="sent", where={"topic": "*/chosen"})
    for number, topic in enumerate(("chosen", "other")):
        asked = pb.CommandProducer(topic=topic, producer_id=number, request_id=number)
        pipe.client.peer_sends(encode_command(Type(type=Type.PRODUCER, producer=asked)))
    receipts = [
        encode_command(
            Type(
                type=Type.SEND_RECEIPT,
                send_receipt=pb.CommandSendReceipt(producer_id=number, sequence_id=0),
            )
        )
        for number in range(2)
    ]
    pipe.broker.peer_sends(b"".join(receipts))
    assert pipe.answered() == receipts[1]


async def test_a_close_consumer_fault_closes_the_consumer_at_client_and_broker() -> None:
    pipe = Pipe()
    fault = pipe.set({"action": "closeConsumer"}, on=["FLOW"])
    flow = Type(type=Type.FLOW, flow=pb.CommandFlow(consumer_id=4, messagePermits=1))
    pipe.client.peer_sends(encode_command(flow))
    pipe.registry.clear(fault)
    # The consumer's messages go to the next consumer
    (told,) = split_commands(pipe.answered())
    close, passed = split_commands(pipe.passed())
    assert told.close_consumer.consumer_id == close.close_consumer.consumer_id == 4
    assert passed == flow
    # The broker answers a request that the client has not sent
    answers = [
        encode_command(Type(type=Type.SUCCESS, success=pb.CommandSuccess(request_id=number)))
        for number in (close.close_consumer.request_id, 7)
    ]
    pipe.broker.peer_sends(b"".join(answers))
    assert pipe.answered() == answers[1]
    assert pipe.legs[1]._raw is not None


@pytest.mark.parametrize("cut", [1, 4, 5])
async def test_an_injected_command_waits_for_the_end_of_the_frame_in_flight(cut: int) -> None:
    pipe = Pipe()
    fault = pipe.set({"action": "closeConsumer"}, on=["FLOW"])
    flow = Type(type=Type.FLOW, flow=pb.CommandFlow(consumer_id=4, messagePermits=1))
    pipe.broker.peer_sends(PING + LOOKUP[:cut])
    pipe.client.peer_sends(encode_command(flow))
    assert pipe.answered() == PING + LOOKUP[:cut]
    pipe.registry.clear(fault)
    pipe.broker.peer_sends(LOOKUP[cut:] + PING)
    passed = pipe.answered()
    assert passed.startswith(LOOKUP[cut:])
    told, ping = split_commands(passed[len(LOOKUP) - cut :])
    assert told.close_consumer.consumer_id == 4
    assert ping.type == Type.PING


async def test_a_client_with_too_many_pending_injected_commands_is_closed() -> None:
    pipe = Pipe()
    pipe.set({"action": "error", "error": "ServiceNotReady"}, on=["LOOKUP"])
    pipe.broker.peer_sends(PING[:5])
    pipe.client.peer_sends(LOOKUP * MAX_SAID)
    await settle()
    assert not pipe.client.is_closing()
    pipe.client.peer_sends(LOOKUP)
    await settle()
    assert pipe.client.is_closing()
