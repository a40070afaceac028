"""Encoded versions of sets: one copy shared by simultaneous recipients."""

import asyncio
import sys

import pytest

from broker.watches.names.sorted_names import SortedNames
from broker.watches.sets import encoded_names
from broker.watches.sets.encoded_names import NAMES_A_PART, EncodedVersions
from broker.watches.sets.watched_sets import WatchedSets
from proto.watch_commands import TOPIC_TAG, encode_names

FEW, MANY = NAMES_A_PART, 3 * NAMES_A_PART + 1


def version_of(count: int) -> SortedNames:
    names = [f"persistent://t/n/{number:06d}".encode() for number in range(count)]
    return SortedNames.from_sorted(names)


@pytest.mark.parametrize("count", [FEW, MANY])
async def test_simultaneous_requests_for_equal_sets_share_a_single_encoded_copy(count) -> None:
    sets = WatchedSets(version_of(count))
    one, other = sets.add("one", sets.everything), sets.add("other", sets.everything)
    asked = [watched.encoded.of(watched.names) for watched in (one, other) for _ in range(25)]
    copies = await asyncio.gather(*asked)
    assert len(set(map(id, copies))) == 1
    expected = encode_names(sets.everything.names(), TOPIC_TAG)
    assert b"".join(copies[0].parts) == expected


@pytest.mark.parametrize("count", [FEW, MANY])
async def test_an_encoded_copy_is_shared_only_while_in_use(count: int) -> None:
    versions, names = EncodedVersions(), version_of(count)
    encoded = await versions.of(names)
    assert await versions.of(names) is encoded
    assert (await versions.of(version_of(1))).parts != encoded.parts
    del encoded
    await asyncio.sleep(0)
    assert len(versions._known) == 0


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a version yield after each leaf."""
    monkeypatch.setattr(encoded_names, "NAMES_A_PART", 10)


@pytest.mark.usefixtures("slowly")
async def test_a_cancelled_request_does_not_cancel_the_shared_encoding() -> None:
    versions, names = EncodedVersions(), version_of(MANY)
    first, second = (asyncio.create_task(versions.of(names)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    encoded = await second
    assert first.cancelled()
    assert b"".join(encoded.parts) == encode_names(names.names(), TOPIC_TAG)


@pytest.mark.usefixtures("slowly")
async def test_encoding_stops_when_all_requests_are_cancelled() -> None:
    versions, names = EncodedVersions(), version_of(MANY)
    asked = asyncio.create_task(versions.of(names))
    await asyncio.sleep(0)
    asked.cancel()
    await asyncio.gather(asked, return_exceptions=True)
    await asyncio.sleep(0)
    assert (len(versions._known), len(versions._under_way)) == (0, 0)
    assert len(asyncio.all_tasks()) == 1


async def test_a_long_encoded_copy_is_freed_in_several_turns(monkeypatch) -> None:
    monkeypatch.setattr(encoded_names, "PARTS_A_TURN", 1, raising=False)
    encoded = await EncodedVersions().of(version_of(MANY))
    parts = list(encoded.parts)

    def held() -> int:
        return sum(sys.getrefcount(part) > own for part in parts)

    own = sys.getrefcount(b"".join([b"only", b"here"])) + 2  # The list's, and the loop's.
    assert held() == len(parts) > 2
    del encoded
    left = [held()]
    while left[-1]:
        await asyncio.sleep(0)
        left.append(held())
    assert left == list(range(len(parts), -1, -1))
