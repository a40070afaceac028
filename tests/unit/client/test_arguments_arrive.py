"""Every argument of the client's methods reaches the right part unchanged."""

import dataclasses
import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import client.client as module
from client.client import Client
from client.consumers.options import (
    ConsumerBatchReceivePolicy,
    ConsumerDeadLetterPolicy,
    ConsumerKeySharedPolicy,
    ConsumerOptions,
    NegativeAckBackoff,
    ReaderOptions,
)
from client.exceptions import OperationNotSupported
from client.interceptors import ConsumerInterceptor, ProducerInterceptor
from client.messages.enums import ConsumerType
from client.messages.message_id import MessageId
from client.producers.options import ProducerOptions
from client.schema import StringSchema

OF_PATTERNS = {"is_pattern_topic"}
REFUSED = {"crypto_key_reader", "encryption_key"}
NAMES = (
    "consumer_name",
    "initial_subscription_name",
    "producer_name",
    "reader_name",
    "subscription_name",
    "subscription_role_prefix",
)


class ProducerAndConsumer(ProducerInterceptor, ConsumerInterceptor):
    """An interceptor for both."""


KNOWN: dict[str, object] = {
    "unacked_messages_timeout_ms": 12_345,
    "receiver_queue_policy": "fixed",
    "batching_enabled": False,
    "discovery_schedule": "go",
    "batch_receive_policy": ConsumerBatchReceivePolicy(),
    "dead_letter_policy": ConsumerDeadLetterPolicy(3),
    "key_shared_policy": ConsumerKeySharedPolicy(),
    "negative_ack_backoff": NegativeAckBackoff(),
    "retry_enabled": True,
    "initial_sequence_id": 7,
    "interceptors": (ProducerAndConsumer(),),
    "message_listener": print,
    "message_router": max,
    "properties": {"x": "y"},
    "reader_listener": print,
    "schema": StringSchema(),
    "subscription_properties": {"x": "y"},
    **dict.fromkeys(NAMES, "x"),
}
"""Distinctive values of arguments."""
CASES = [
    ("create_producer", "open_producer", ProducerOptions, ("topic",)),
    ("subscribe", "open_consumer", ConsumerOptions, ("topic", "subscription")),
    ("create_reader", "open_reader", ReaderOptions, ("topic", MessageId.earliest)),
]


class Opened:
    """Stand-in for the opened object."""

    async def close(self) -> None:
        """No-op."""


# Arguments required by another argument.
GO_WITH: dict[str, dict[str, object]] = {
    "retry_enabled": {"dead_letter_policy": KNOWN["dead_letter_policy"]},
    "dead_letter_policy": {"consumer_type": ConsumerType.Shared},
    "chunking_enabled": {"batching_enabled": False},
}


def another(name: str, default: object) -> Any:
    """Return a value other than the default."""
    if name in KNOWN:
        return KNOWN[name]
    if isinstance(default, bool):
        return not default
    if isinstance(default, int | float):
        return default + 1
    if default is not None and hasattr(type(default), "__members__"):
        return next(one for one in type(default) if one is not default)
    return object()


def arguments(method: Callable[..., object]) -> dict[str, object]:
    """Return the optional arguments of a method, with defaults."""
    return {
        name: one.default
        for name, one in inspect.signature(method).parameters.items()
        if one.default is not inspect.Parameter.empty
    }


@pytest.mark.parametrize(("method", "opens", "options_class", "needed"), CASES)
async def test_every_argument_reaches_its_options_unchanged(
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    opens: str,
    options_class: type,
    needed: tuple[object, ...],
) -> None:
    seen: list[Any] = []

    async def opened(*given: object) -> Opened:
        seen.append(given[-1])
        return Opened()

    monkeypatch.setattr(module, opens, opened)
    fields = {one.name: one.default for one in dataclasses.fields(options_class)}
    ours = arguments(getattr(Client, method))
    async with Client("pulsar://127.0.0.1:1") as client:
        for name, default in ours.items():
            if name in REFUSED or name in OF_PATTERNS:
                continue
            value = another(name, default)
            await getattr(client, method)(*needed, **{name: value, **GO_WITH.get(name, {})})
            assert getattr(seen.pop(), name) == value, name
    assert ours == fields


@pytest.mark.parametrize(("topic", "marked"), [(re.compile("a/b/c.*"), False), ("a/b/c.*", True)])
async def test_a_topic_pattern_is_subscribed_with_its_discovery_schedule(
    monkeypatch, topic, *, marked
) -> None:
    seen: list[Any] = []

    async def opened(_: object, *given: object) -> Opened:
        seen.extend(given)
        return Opened()

    monkeypatch.setattr(module, "open_pattern_consumer", opened)
    async with Client("pulsar://127.0.0.1:1") as client:
        await client.subscribe(topic, "s", is_pattern_topic=marked, discovery_schedule="cpp")
        with pytest.raises(ValueError, match="a pattern of topics is a str, not list"):
            await client.subscribe(["a"], "s", is_pattern_topic=True)
    pattern, subscription, options = seen
    assert (pattern.text, subscription) == ("persistent://a/b/c.*", "s")
    assert options.discovery_schedule == "cpp"
    assert options.is_pattern_topic


@pytest.mark.parametrize(("method", "opens", "options_class", "needed"), CASES)
async def test_encryption_arguments_are_refused(method, opens, options_class, needed) -> None:
    async with Client("pulsar://127.0.0.1:1") as client:
        for name in REFUSED & set(arguments(getattr(client, method))):
            with pytest.raises(OperationNotSupported, match="crypt"):
                await getattr(client, method)(*needed, **{name: "key"})
