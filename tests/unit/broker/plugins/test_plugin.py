"""How a listing plug-in is loaded, gets ready and is closed."""

import asyncio

import pytest

import proto.PulsarApi_pb2 as pb
from broker.configuration.config import BrokerConfig
from broker.configuration.plugin_keys import DEFAULT_CLASS_NAME, class_name_problem
from broker.plugins.plugin import (
    BrokerContext,
    DefaultPulsarResourcesExtended,
    open_resources,
    told,
)
from broker.stores.changes import TopicChanges
from broker.stores.memory import MemoryStore
from proto.names import NamespaceName
from server.errors import StartError
from tests.support.clocks.manual_clock import ManualClock
from tests.support.clocks.settle import settle, started
from tests.unit.broker.plugins import plug_ins

HERE = "tests.unit.broker.plugins.plug_ins"
PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT
NAMESPACE = NamespaceName.parse("tenant/ns")


def opened(name: str, clock: ManualClock | None = None):
    context = BrokerContext(MemoryStore(), BrokerConfig.from_properties({}))
    return open_resources(name, context, 30.0, clock or ManualClock())


@pytest.mark.parametrize("name", ["Scripted", "Asynchronous"])
async def test_a_plug_in_is_initialized_on_entry_and_closed_on_exit(name: str) -> None:
    async with opened(f"{HERE}:{name}") as resources:
        assert isinstance(resources, plug_ins.Scripted)
        assert resources.context is not None
        assert isinstance(resources.context.store, MemoryStore)
        assert not resources.closed
    assert resources.closed


async def test_javas_default_class_name_opens_the_default_plug_in() -> None:
    async with opened(DEFAULT_CLASS_NAME) as resources:
        assert type(resources) is DefaultPulsarResourcesExtended


async def test_the_default_plug_in_lists_all_topics_whatever_the_properties() -> None:
    store = MemoryStore()
    await store.apply(NAMESPACE, TopicChanges([b"persistent://tenant/ns/a"]))
    resources = DefaultPulsarResourcesExtended()
    resources.initialize(BrokerContext(store, BrokerConfig.from_properties({})))
    listing = await resources.list_topics_of_namespace(NAMESPACE, PERSISTENT, {"k": "v"})
    other = NamespaceName.parse("tenant/none")
    assert list(listing.names()) == ["persistent://tenant/ns/a"]
    assert len(await resources.list_topics_of_namespace(other, PERSISTENT, {"k": "v"})) == 0


def test_the_default_plug_in_raises_an_error_before_initialize() -> None:
    with pytest.raises(RuntimeError, match="initialize was not called"):
        _ = DefaultPulsarResourcesExtended().store


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("no.such.module:Class", "no.such.module cannot be imported: ModuleNotFoundError"),
        ("tests.unit.broker.plugins.broken_plug_in:Class", "ValueError: a broken module"),
        (f"{HERE}:Missing", f"{HERE} has no class Missing"),
        (f"{HERE}:NOT_A_CLASS", f"{HERE} has no class NOT_A_CLASS"),
        (f"{HERE}:Incomplete", "Incomplete lacks list_topics_of_namespace, close"),
        (f"{HERE}:Abstract", "Abstract lacks more"),
        (f"{HERE}:NotMade", "NotMade() failed: ValueError: no file"),
        (f"{HERE}:NotReady", "initialize failed: OSError: no database"),
        (f"{HERE}:Exits", "initialize failed: SystemExit: bye"),
    ],
)
async def test_an_unusable_plug_in_fails_the_start_with_a_single_sentence(name, told) -> None:
    with pytest.raises(StartError) as caught:
        async with opened(name):
            pass
    sentence = str(caught.value)
    assert sentence.startswith(f"pulsarResourcesExtendedClassName={name}: ")
    assert told in sentence
    assert "\n" not in sentence


async def test_a_plug_in_that_does_not_initialize_in_time_fails_the_start() -> None:
    clock = ManualClock()

    async def start() -> None:
        async with opened(f"{HERE}:NeverReady", clock):
            pass

    starting = await started(start())
    clock.advance(30.0)
    with pytest.raises(StartError, match="initialize took more than 30 s"):
        await starting


@pytest.mark.parametrize(
    ("name", "told"), [("NotClosed", "RuntimeError: stuck"), ("NeverClosed", "TimeoutError")]
)
async def test_a_plug_in_that_fails_to_close_is_logged_and_does_not_block_the_broker(
    name, told, caplog
) -> None:
    clock, left = ManualClock(), asyncio.Event()

    async def serve() -> None:
        async with opened(f"{HERE}:{name}", clock):
            await left.wait()

    serving = await started(serve())
    left.set()
    await settle()
    clock.advance(5.0)
    await serving
    (sentence,) = caplog.messages
    assert sentence.startswith(f"pulsarResourcesExtendedClassName={HERE}:{name}: close failed: ")
    assert told in sentence


@pytest.mark.parametrize("name", [DEFAULT_CLASS_NAME, "broker.property_index:PropertyIndex", "a:B"])
def test_a_plug_in_name_of_module_and_class_is_accepted(name: str) -> None:
    assert class_name_problem(name) is None


@pytest.mark.parametrize(
    "name", ["com.example.Plugin", "a.b", "a:", ":B", "a:B:C", "a/b:C", "a..b:C", ".a:B", "a:B.C"]
)
def test_a_malformed_plug_in_name_is_refused_with_the_expected_form(name: str) -> None:
    problem = class_name_problem(name)
    assert problem is not None
    assert repr(name) in problem
    assert "module:Class" in problem


def test_the_text_of_any_exception_is_made_short_and_encodable() -> None:
    class RudeError(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert told(ValueError("a\ud800b")) == r"ValueError: a\ud800b"
    assert told(RudeError()) == "RudeError"
    assert len(told(ValueError("x" * 100_000))) < 400
    pb.CommandError(request_id=1, error=1, message=told(ValueError("\udfff")))
