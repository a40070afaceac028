"""Hashes as computed by real brokers and clients."""

import google_crc32c
import pytest

from proto.topic_hash import (
    EMPTY_HASH,
    combine_crc,
    combine_joined,
    format_hash,
    in_java_order,
    java_order,
    joined_crc,
    topics_hash,
)

T = "persistent://tenant/ns/"


@pytest.mark.parametrize(
    ("names", "digest"),
    [
        ([], EMPTY_HASH),
        ([f"{T}topic1"], "fd59a01d"),
        ([f"{T}topic1", f"{T}topic2"], "21ed405c"),
        ([f"{T}topic2", f"{T}topic1"], "21ed405c"),
        ([f"persistent://prop/ns-abc/topic-1-partition-{number}" for number in (0, 1)], "897d4f50"),
        ([f"{T}tópico"], "1dedf029"),
        (["a,b"], "3ae8eccf"),
        (["a", "b"], "3ae8eccf"),
        ([f"persistent://public/default/{name}" for name in "ab"], "c7559e98"),
        (
            [f"persistent://public/gold/parted-partition-{number}" for number in (0, 1, 2)],
            "38c7ac54",
        ),
        (
            [
                f"persistent://public/gold/{name}"
                for name in (
                    "beta-1",
                    "gamma.x",
                    "parted-partition-0",
                    "parted-partition-1",
                    "parted-partition-2",
                )
            ],
            "ea24407a",
        ),
    ],
)
def test_the_hash_of_a_topic_list_matches_recorded_hashes(names: list[str], digest: str) -> None:
    assert topics_hash(names) == digest


def test_a_hash_is_written_lowest_byte_first() -> None:
    # Guava's published value
    crc = google_crc32c.value(b"The quick brown fox jumps over the lazy dog")
    assert (crc, format_hash(crc)) == (0x22620404, "04046222")


def test_duplicates_are_hashed_as_they_appear() -> None:
    assert topics_hash(["a", "a"]) != topics_hash(["a"])


def test_java_order_sorts_supplementary_characters_before_e000() -> None:
    beyond, private, plain = "\U0001f600".encode(), "\ue000".encode(), "\ud7ff".encode()
    assert sorted([private, beyond, plain], key=java_order) == [plain, beyond, private]
    assert in_java_order([private, beyond, plain, beyond]) == [plain, beyond, private]
    assert in_java_order([b"b", b"a", b"b"]) == [b"a", b"b"]
    assert topics_hash(["\ue000", "\U0001f600"]) == format_hash(
        google_crc32c.value(beyond + b"," + private)
    )


def test_the_crc_of_a_long_text_is_combined_from_its_parts() -> None:
    first, second = b"123", b"456789" * 100_000
    combined = combine_crc(google_crc32c.value(first), google_crc32c.value(second), len(second))
    assert combined == google_crc32c.value(first + second)


@pytest.mark.parametrize(
    ("left", "right"), [([], []), ([], [b"a"]), ([b"a"], []), ([b""], [b"a"]), ([b"a"], [b""])]
)
def test_an_empty_list_adds_no_comma_and_an_empty_name_does(left, right) -> None:
    combined = combine_joined((len(left), *joined_crc(left)), (len(right), *joined_crc(right)))
    assert combined == joined_crc(left + right)
