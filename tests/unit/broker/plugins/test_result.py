"""Permitted results of a foreign plug-in, and their conversion."""

import asyncio
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import broker.plugins.result
import proto.PulsarApi_pb2 as pb
from broker.plugins.errors import UnusableAnswerError
from broker.plugins.result import listing_of_names
from proto.names import MAX_NAME_BYTES, InvalidNameError, NamespaceName, TopicName
from proto.topic_hash import topics_hash
from server.tasks.cooperative import Steps
from tests.support.processes.cluster import topic_names

NAMESPACE = NamespaceName.parse("te.nant/n-s")
PERSISTENT = pb.CommandGetTopicsOfNamespace.PERSISTENT
NON_PERSISTENT = pb.CommandGetTopicsOfNamespace.NON_PERSISTENT
ALL = pb.CommandGetTopicsOfNamespace.ALL
SOME = [f"persistent://te.nant/n-s/{local}" for local in ("b", "a", "\uff5e", "\U0001f600", "é")]


async def names(answer: object, mode: int = PERSISTENT) -> list[str]:
    return list((await listing_of_names(answer, NAMESPACE, mode, Steps())).names())


async def refusal(answer: object, mode: int = PERSISTENT) -> str:
    with pytest.raises(UnusableAnswerError) as caught:
        await listing_of_names(answer, NAMESPACE, mode, Steps())
    return str(caught.value)


async def test_names_in_any_order_become_a_listing_in_javas_order() -> None:
    listing = await listing_of_names(SOME, NAMESPACE, PERSISTENT, Steps())
    ends = [name.rsplit("/", 1)[1] for name in listing.names()]
    assert ends == ["a", "b", "é", "\U0001f600", "\uff5e"]
    assert listing.hash == topics_hash(SOME)


async def test_duplicate_names_count_once() -> None:
    assert await names([*SOME, *SOME, SOME[0]]) == await names(SOME)


async def test_an_empty_list_is_an_empty_listing() -> None:
    assert await names([]) == []
    assert await names(()) == []


async def test_names_of_both_domains_are_sorted_together() -> None:
    other = "non-persistent://te.nant/n-s/z"
    assert await names([SOME[0], other], ALL) == [other, SOME[0]]
    assert await names([other], NON_PERSISTENT) == [other]


async def test_system_topics_are_removed_from_the_names() -> None:
    hidden = "persistent://te.nant/n-s/__change_events"
    mine = "persistent://te.nant/n-s/__mine"
    assert await names([hidden, mine, f"{hidden}-partition-0"]) == [mine]


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (None, "NoneType where a list of names was expected"),
        ("persistent://te.nant/n-s/a", "str where a list of names was expected"),
        ({"persistent://te.nant/n-s/a"}, "set where a list of names was expected"),
        ([SOME[0], 7], "a list that holds int, not only str"),
        ([SOME[0].encode()], "a list that holds bytes, not only str"),
        ([None], "a list that holds NoneType, not only str"),
        (["persistent://te.nant/n-s/\ud800"], r"'persistent://te.nant/n-s/\ud800', which is no"),
    ],
)
async def test_a_result_that_is_not_a_list_of_names_is_refused_with_its_type(
    answer: object, told: str
) -> None:
    assert told in await refusal(answer)


@pytest.mark.parametrize(
    "wrong",
    [
        "persistent://te.nant/other/a",
        "persistent://teXnant/n-s/a",
        "persistent://te.nant/n-s2/a",
        "non-persistent://te.nant/n-s/a",
        "te.nant/n-s/a",
        "persistent://te.nant/n-s/",
        "persistent://te.nant/n-s/a/b",
        " persistent://te.nant/n-s/a",
        "",
    ],
)
async def test_a_name_outside_the_namespace_or_mode_is_refused_with_both_named(wrong: str) -> None:
    assert await refusal([SOME[0], wrong]) == (
        f"{wrong!a}, which is no topic of te.nant/n-s, mode PERSISTENT"
    )


async def test_a_name_that_is_too_long_is_refused_with_its_length() -> None:
    start = "persistent://te.nant/n-s/"
    local = "é" * ((MAX_NAME_BYTES - len(start)) // 2)
    fits = f"{start}x{local}-partition-2147483647"
    assert await names([SOME[0], fits]) == [SOME[0], fits]
    told = await refusal([SOME[0], f"{fits}0"])
    assert told.startswith(ascii(fits[:200]))
    assert told.endswith("..., which has 2070 bytes: a topic's name has at most 2069")


async def test_a_long_invalid_name_is_reported_shortened() -> None:
    assert len(await refusal(["x" * 1_000_000])) < 300


def test_the_name_check_agrees_with_topic_name_parsing_for_every_character() -> None:
    characters = [chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000]
    made = [f"persistent://te.nant/n-s/{character}" for character in characters]
    rule = broker.plugins.result._valid_name(NAMESPACE, PERSISTENT)
    valid = pc.match_substring_regex(pa.array(made), rule).to_pylist()
    assert valid == [_parses(name) for name in made]


def _parses(name: str) -> bool:
    try:
        TopicName.parse(name)
    except InvalidNameError:
        return False
    return True


async def test_a_long_list_is_converted_in_steps_to_an_equal_listing() -> None:
    many = [*topic_names("te.nant/n-s", 20_000), SOME[2], SOME[3]]
    random.Random(1).shuffle(many)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    counting = asyncio.create_task(count_turns())
    listing = await listing_of_names(many, NAMESPACE, PERSISTENT, Steps(0))
    counting.cancel()
    assert turns >= 20_000 // broker.plugins.result.NAMES_PER_STEP
    assert len(listing) == len(many)
    assert listing.hash == topics_hash(many)


async def test_a_list_that_shrinks_during_conversion_causes_no_error() -> None:
    many = topic_names("te.nant/n-s", 20_000)
    taking = asyncio.create_task(listing_of_names(many, NAMESPACE, PERSISTENT, Steps(0)))
    await asyncio.sleep(0)
    del many[100:]
    assert len(await taking) >= 100
