"""The official asyncio client's names, arguments, defaults and enums exist here as well.

The tables below list the differences with reasons.
"""

import inspect
import re
from collections.abc import Callable, Iterator

import _pulsar
import pulsar
import pulsar.asyncio as official
import pulsar.schema as official_schema
import pytest

import client
from tests.support.processes.server_process import REPOSITORY

OTHERWISE: dict[tuple[str, str], str] = {
    ("Client.create_producer", "block_if_queue_full"): (
        "None: send waits, as False would not; an explicit False fails at once"
    ),
}
"""Deliberately different defaults."""
NOT_HERE = {
    "BatchReceivePolicy": "the C++ class inside ConsumerBatchReceivePolicy",
    "Context": "Pulsar Functions are not a client's",
    "DeadLetterPolicyBuilder": "the C++ class inside ConsumerDeadLetterPolicy",
    "IdentitySerDe": "Pulsar Functions are not a client's",
    "KeySharedPolicy": "the C++ class inside ConsumerKeySharedPolicy",
    "PickleSerDe": "Pulsar Functions are not a client's",
}
"""Names of the official package missing here, and why."""
NOT_HERE_METHODS = {
    ("ConsumerBatchReceivePolicy", "policy"): "the C++ object",
    ("ConsumerDeadLetterPolicy", "policy"): "the C++ object",
    ("ConsumerKeySharedPolicy", "policy"): "the C++ object",
    ("MessageId", "wrap"): "of a C++ object",
    ("ServiceInfo", "wrap"): "of a C++ object",
    ("Producer", "send_async"): "send_nowait, which returns a future",
}
NOT_HONOURED = {
    "crypto_key_reader",
    "encryption_key",
    "io_threads",
    "log_conf_file_path",
    "message_listener_threads",
    "use_tls",
}
"""Arguments refused here, or without effect in the official client either."""
ENUMS = [
    "BatchingType",
    "CompressionType",
    "ConsumerCryptoFailureAction",
    "ConsumerType",
    "InitialPosition",
    "KeySharedMode",
    "PartitionsRoutingMode",
    "ProducerAccessMode",
    "RegexSubscriptionMode",
    "Result",
]
ASYNC_CLASSES = ["Client", "Consumer", "Producer", "Reader"]
VALUES = [
    "AuthenticationAthenz",
    "AuthenticationBasic",
    "AuthenticationOauth2",
    "AuthenticationTLS",
    "AuthenticationToken",
    "Authentication",
    "ConsumerBatchReceivePolicy",
    "ConsumerDeadLetterPolicy",
    "ConsumerKeySharedPolicy",
    "EncryptionContext",
    "Message",
    "MessageBatch",
    "MessageId",
    "ServiceInfo",
    "TableView",
]


def public_methods(kind: type) -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield a class's own methods, and the constructor."""
    for name in dir(kind):
        method = inspect.getattr_static(kind, name)
        if isinstance(method, staticmethod | classmethod):
            method = method.__func__
        if inspect.isfunction(method) and (not name.startswith("_") or name == "__init__"):
            yield name, method


def methods_of(kinds: list[str], module: object) -> list[tuple[str, str]]:
    """Return class and method of all methods in a module's classes."""
    return [
        (kind, name)
        for kind in kinds
        for name, _ in public_methods(getattr(module, kind))
        if (kind, name) not in NOT_HERE_METHODS
    ]


def parameters(function: object) -> dict[str, inspect.Parameter]:
    """Return a function's parameters, except self and variadic parameters."""
    found = inspect.signature(function).parameters
    gathering = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return {
        name: one
        for name, one in found.items()
        if name not in ("self", "cls") and one.kind not in gathering
    }


def plain(default: object) -> object:
    """Return a default in a form comparable between both packages."""
    if isinstance(default, pulsar.schema.BytesSchema):
        return None
    return getattr(default, "name", default)


def check(where: str, theirs: object, ours: object, *, in_order: bool = True) -> None:
    """Compare two functions' parameters: names, order, defaults."""
    expected, found = parameters(theirs), parameters(ours)
    missing = [name for name in expected if name not in found]
    assert not missing, f"{where} lacks {missing}"
    if in_order:
        order = [name for name in found if name in expected]
        assert order == list(expected), f"{where}: another order"
    for name, parameter in expected.items():
        if (where, name) in OTHERWISE:
            assert plain(found[name].default) != plain(parameter.default)
        elif parameter.default is not inspect.Parameter.empty:
            assert plain(found[name].default) == plain(parameter.default), f"{where}: {name}"


def test_methods_of_the_asyncio_client_have_the_same_arguments() -> None:
    check("Client", pulsar.Client.__init__, client.Client)
    for kind, name in methods_of(ASYNC_CLASSES, official):
        if name != "__init__":
            theirs, ours = (getattr(getattr(one, kind), name) for one in (official, client))
            asynchronous = inspect.iscoroutinefunction(theirs)
            assert inspect.iscoroutinefunction(ours) is asynchronous, f"{kind}.{name}"
            check(f"{kind}.{name}", theirs, ours)


@pytest.mark.parametrize(
    ("call", "theirs"),
    [
        ("Client", pulsar.Client.__init__),
        ("create_producer", official.Client.create_producer),
        ("subscribe", official.Client.subscribe),
        ("create_reader", official.Client.create_reader),
        ("create_table_view", pulsar.Client.create_table_view),
        ("Producer.send", official.Producer.send),
    ],
)
def test_the_documentation_lists_every_argument_as_honoured_or_not(
    call: str, theirs: object
) -> None:
    page = (REPOSITORY / "docs" / "coming-from-pulsar-client.md").read_text()
    (row,) = re.findall(rf"^\| `{call}` \|(.*)\|(.*)\|$", page, re.MULTILINE)
    honoured, others = (re.findall(r"`(\w+)`", column) for column in row)
    assert {*honoured, *others} == set(parameters(theirs))
    assert set(others) == NOT_HONOURED & set(parameters(theirs))


def test_arguments_of_the_synchronous_client_exist_here() -> None:
    for kind, name in methods_of(ASYNC_CLASSES, pulsar):
        if name != "__init__":
            theirs, ours = (
                getattr(getattr(pulsar, kind), name),
                getattr(getattr(client, kind), name),
            )
            missing = [one for one in parameters(theirs) if one not in parameters(ours)]
            assert not missing, f"{kind}.{name}"


def test_value_classes_have_the_same_constructors_and_methods() -> None:
    for kind, name in methods_of(VALUES, pulsar):
        their_class, our_class = getattr(pulsar, kind), getattr(client, kind)
        if name != "__init__":
            assert callable(getattr(our_class, name)), f"{kind}.{name}"
            check(f"{kind}.{name}", getattr(their_class, name), getattr(our_class, name))
        elif "_pulsar" not in str(inspect.signature(their_class)):
            check(kind, their_class, our_class)


def test_value_classes_have_the_same_properties() -> None:
    for kind in VALUES:
        theirs, ours = getattr(pulsar, kind), getattr(client, kind)
        names = [n for n in dir(theirs) if isinstance(inspect.getattr_static(theirs, n), property)]
        assert [name for name in names if not hasattr(ours, name)] == [], kind


def test_enums_have_the_same_members_and_values() -> None:
    for name in ENUMS:
        theirs, ours = getattr(pulsar, name), getattr(client, name)
        assert {one: int(member) for one, member in theirs.__members__.items()} == {
            one: member.value for one, member in ours.__members__.items()
        }, name


def exceptions() -> list[str]:
    return [
        name
        for name in dir(_pulsar)
        if isinstance(getattr(_pulsar, name), type)
        and issubclass(getattr(_pulsar, name), Exception)
    ]


def test_exceptions_have_the_same_names() -> None:
    for name in exceptions():
        ours = getattr(client, name)
        assert issubclass(ours, client.PulsarException)
        assert getattr(client.exceptions, name) is ours
        assert isinstance(ours("text").error(), client.Result)


def test_every_missing_name_is_listed_with_its_reason() -> None:
    theirs = {
        name
        for name, value in vars(pulsar).items()
        if not name.startswith("_") and isinstance(value, type) and value.__module__ != "typing"
    }
    theirs -= {"timedelta"}
    assert sorted(name for name in theirs if not hasattr(client, name)) == sorted(NOT_HERE)


def test_every_schema_of_the_official_client_exists_here() -> None:
    names = {name for name, one in vars(official_schema).items() if isinstance(one, type)}
    assert sorted(name for name in names if not hasattr(client.schema, name)) == []
