import pytest

from client.messages.enums import HashingScheme
from client.producers.routing import key_hash

# Partitions chosen by the official Python client 3.13.0, of 1,009 and of 997.
OFFICIAL = {
    "a": (377, 639),
    "Kö": (262, 179),
    "key": (236, 420),
    "0123": (936, 942),
    "01234": (425, 316),
    "a\0b": (738, 80),
    "Kö/ñ7": (571, 842),
    "aaaaaaa": (910, 761),
    "01234567": (584, 423),
    "012345678": (493, 12),
    "😀": (749, 39),
    "x" * 15: (587, 52),
    "x" * 16: (201, 166),
    "x" * 17: (447, 817),
    "y" * 40: (788, 919),
    "Kö/ñ7-xQzé0123456789abcdef": (131, 558),
}


@pytest.mark.parametrize(("key", "partitions"), OFFICIAL.items())
def test_boost_hash_selects_the_partition_of_the_official_client(key, partitions) -> None:
    found = key_hash(HashingScheme.BoostHash, key)
    assert (found % 1_009, found % 997) == partitions


@pytest.mark.parametrize(
    ("key", "expected"),
    # Java's own answers, without the sign.
    [("", 0), ("a", 97), ("hello", 99162322), ("polygenelubricants", 0), ("😀", 1772899)],
)
def test_java_string_hash_equals_the_hash_of_java(key: str, expected: int) -> None:
    assert key_hash(HashingScheme.JavaStringHash, key) == expected


@pytest.mark.parametrize(
    ("key", "expected"), [("", 0), ("test", 0xBA6BD213 & 0x7FFFFFFF), ("k1", 2_110_152_746)]
)
def test_murmur3_hash_equals_the_reference_values(key: str, expected: int) -> None:
    assert key_hash(HashingScheme.Murmur3_32Hash, key) == expected


@pytest.mark.parametrize("scheme", list(HashingScheme))
def test_a_key_that_is_no_valid_unicode_is_hashed(scheme: HashingScheme) -> None:
    assert 0 <= key_hash(scheme, "a\udcff") < 2**31
