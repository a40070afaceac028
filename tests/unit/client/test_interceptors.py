from collections.abc import Callable
from typing import Any

import pytest

import proto.PulsarApi_pb2 as pb
from client.interceptors import (
    ConsumerInterceptor,
    ConsumerInterceptors,
    ProducerInterceptor,
    ProducerInterceptors,
)
from client.messages.message import EntryHead, Message
from client.messages.message_id import MessageId
from client.messages.outgoing import OutgoingMessage
from client.schema import BytesSchema

ID = MessageId(-1, 1, 2)
HEAD = EntryHead(pb.MessageMetadata(), pb.CommandMessage(), "t", BytesSchema())
MESSAGE = Message(HEAD, None, b"", -1)
OTHER = Message(HEAD, None, b"other", -1)
MOMENTS: dict[str, tuple[Any, ...]] = {
    "on_acknowledge": (None, ID, None),
    "on_acknowledge_cumulative": (None, ID, None),
    "on_negative_acks_send": (None, [ID]),
    "on_ack_timeout_send": (None, [ID]),
    "on_close": (),
}


def calling(name: str, act: Callable[..., object]) -> Any:
    """Return an interceptor acting at a given call."""
    kind = type("One", (ProducerInterceptor, ConsumerInterceptor), {name: staticmethod(act)})
    return kind()


def fail(*_: object) -> None:
    raise RuntimeError("an interceptor's own")


@pytest.mark.parametrize("name", MOMENTS)
def test_consumer_interceptors_are_called_in_order_and_a_failed_call_is_skipped(
    name: str, caplog
) -> None:
    told: list[object] = []
    acts = (lambda *_: told.append(1), fail, lambda *_: told.append(2))
    ones = [calling(name, act) for act in acts]
    getattr(ConsumerInterceptors(ones), name)(*MOMENTS[name])
    assert told == [1, 2]
    assert "an interceptor failed, and is passed over" in caplog.text


@pytest.mark.parametrize(
    ("act", "found"), [(lambda *_: OTHER, OTHER), (lambda *_: None, MESSAGE), (fail, MESSAGE)]
)
def test_before_consume_returns_the_interceptors_message_or_the_original(act, found) -> None:
    interceptors = ConsumerInterceptors([calling("before_consume", act)])
    assert interceptors.before_consume(None, MESSAGE) is found


def test_producer_interceptors_are_called_at_each_event_despite_failures() -> None:
    told: list[object] = []
    message = OutgoingMessage(b"a", 0)

    class One(ProducerInterceptor):
        def before_send(self, producer: object, message: OutgoingMessage) -> None:
            message.payload = b"changed"

        def on_send_acknowledgement(self, *arguments: object) -> None:
            told.append(arguments)

        def on_close(self) -> None:
            told.append("closed")

    failing = [calling(name, fail) for name in ("before_send", "on_send_acknowledgement")]
    interceptors = ProducerInterceptors([*failing, calling("on_close", fail), One()])
    interceptors.before_send("p", message)
    interceptors.on_send_acknowledgement("p", message, ID, None)
    interceptors.on_close()
    assert message.payload == b"changed"
    assert told == [("p", message, ID, None), "closed"]


def test_undefined_interceptor_methods_do_nothing() -> None:
    nothing = type("Nothing", (ProducerInterceptor, ConsumerInterceptor), {})()
    consuming, producing = ConsumerInterceptors([nothing]), ProducerInterceptors([nothing])
    for name, arguments in MOMENTS.items():
        getattr(consuming, name)(*arguments)
    assert consuming.before_consume(None, MESSAGE) is MESSAGE
    producing.before_send(None, OutgoingMessage(b"", 0))
    producing.on_send_acknowledgement(None, OutgoingMessage(b"", 0), None, None)
    producing.on_close()


def test_an_empty_interceptor_chain_is_falsy() -> None:
    assert not ConsumerInterceptors(())
    assert not ProducerInterceptors(())
