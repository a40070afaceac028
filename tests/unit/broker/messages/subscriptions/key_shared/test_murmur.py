"""Pulsar's hash of keys, consumers and topics."""

import pytest

from broker.messages.subscriptions.key_shared.murmur import murmur


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0), (b"\0\0\0\0", 0x2362F9DE), (b"test", 0xBA6BD213 & 0x7FFFFFFF)],
)
def test_it_is_murmur3_without_its_sign(data: bytes, expected: int) -> None:
    assert murmur(data) == expected
