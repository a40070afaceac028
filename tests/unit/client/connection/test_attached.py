"""Frames for producers, consumers and watches reach the right recipient."""

import pytest

import proto.PulsarApi_pb2 as pb
from client.connection.attached import Attached
from proto.frames import Frame

Type = pb.BaseCommand
FRAME = Frame(0, ())


class Told:
    """Records each call, with arguments."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, ...]] = []

    def __getattr__(self, name: str) -> object:
        def call(*arguments: object, **named: object) -> None:
            self.calls.append((name, *arguments, *named.values()))

        return call


def attached() -> tuple[Attached, Told]:
    told = Told()
    parts = Attached()
    parts.producers[1] = parts.consumers[1] = parts.watches[1] = told  # type: ignore[assignment]
    return parts, told


def commands(number: int) -> dict[str, pb.BaseCommand]:
    """Return a command of each kind for the part with this number, by the resulting call."""
    message_id = pb.MessageIdData(ledgerId=1, entryId=2)
    return {
        "message_received": pb.BaseCommand(
            type=Type.MESSAGE, message=pb.CommandMessage(consumer_id=number, message_id=message_id)
        ),
        "receipt_received": pb.BaseCommand(
            type=Type.SEND_RECEIPT,
            send_receipt=pb.CommandSendReceipt(producer_id=number, sequence_id=0),
        ),
        "send_refused": pb.BaseCommand(
            type=Type.SEND_ERROR,
            send_error=pb.CommandSendError(
                producer_id=number, sequence_id=0, error=pb.ChecksumError, message=""
            ),
        ),
        "active_changed": pb.BaseCommand(
            type=Type.ACTIVE_CONSUMER_CHANGE,
            active_consumer_change=pb.CommandActiveConsumerChange(consumer_id=number),
        ),
        "end_of_topic_reached": pb.BaseCommand(
            type=Type.REACHED_END_OF_TOPIC,
            reachedEndOfTopic=pb.CommandReachedEndOfTopic(consumer_id=number),
        ),
        "update_received": pb.BaseCommand(
            type=Type.WATCH_TOPIC_UPDATE,
            watchTopicUpdate=pb.CommandWatchTopicUpdate(watcher_id=number, topics_hash=""),
        ),
    }


@pytest.mark.parametrize("call", commands(1))
def test_each_command_reaches_the_recipient_with_its_id(call: str) -> None:
    parts, told = attached()
    taken = parts.receive(commands(1)[call], FRAME)
    assert taken
    assert [name for name, *_ in told.calls] == [call]


@pytest.mark.parametrize("call", commands(2))
def test_a_command_for_an_unknown_recipient_is_dropped(call: str) -> None:
    parts, told = attached()
    taken = parts.receive(commands(2)[call], FRAME)
    assert taken
    assert not told.calls


@pytest.mark.parametrize("url", [None, "pulsar://b:1"])
def test_a_producer_or_consumer_closed_by_the_broker_is_detached_with_the_new_url(
    url: str | None,
) -> None:
    parts, told = attached()
    producer = pb.CommandCloseProducer(producer_id=1, request_id=0, assignedBrokerServiceUrl=url)
    consumer = pb.CommandCloseConsumer(consumer_id=1, request_id=0, assignedBrokerServiceUrl=url)
    parts.receive(pb.BaseCommand(type=Type.CLOSE_PRODUCER, close_producer=producer), FRAME)
    parts.receive(pb.BaseCommand(type=Type.CLOSE_CONSUMER, close_consumer=consumer), FRAME)
    assert told.calls == [("closed_by_broker", url)] * 2
    assert not parts.producers
    assert not parts.consumers


def test_a_lost_connection_is_reported_to_each_recipient_once() -> None:
    parts, told = attached()
    parts.lost()
    parts.lost()
    assert told.calls == [("connection_lost",)] * 3


def test_an_answer_to_a_request_is_not_handled_as_a_recipients_command() -> None:
    parts, _ = attached()
    success = pb.BaseCommand(type=Type.SUCCESS, success=pb.CommandSuccess(request_id=1))
    assert not parts.receive(success, FRAME)


@pytest.mark.parametrize(("tls", "url"), [(False, "pulsar://b:1"), (True, "pulsar+ssl://b:2")])
def test_a_closed_producer_receives_the_new_url_for_the_connections_scheme(
    tls: bool, url: str
) -> None:
    told = Told()
    parts = Attached(tls=tls)
    parts.producers[1] = told  # type: ignore[assignment]
    close = pb.CommandCloseProducer(
        producer_id=1,
        request_id=0,
        assignedBrokerServiceUrl="pulsar://b:1",
        assignedBrokerServiceUrlTls="pulsar+ssl://b:2",
    )
    parts.receive(pb.BaseCommand(type=Type.CLOSE_PRODUCER, close_producer=close), FRAME)
    assert told.calls == [("closed_by_broker", url)]
