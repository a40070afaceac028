"""The name of a key says which unit its value may have."""

from __future__ import annotations

import pytest

from loadgen.documents.values import number
from loadgen.errors import UsageError


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("rate_bytes_per_second", "100kB/s", 100_000), ("receive_buffer_bytes", "64KiB", 65_536),
        ("seconds", "30s", 30), ("at_seconds", "250ms", 0.25), ("hold_seconds", "5m", 300),
        ("seconds_each", "1.5min", 90), ("every_seconds", "2h", 7200), ("seed_seconds", "7", 7),
        ("per_second", "50/s", 50), ("to_per_second", "120/min", 2), ("per_second", "3", 3),
        ("share", "10%", 0.1), ("jitter", "0.5 %", 0.005), ("file", "a 10%.log", "a 10%.log"),
    ],
)  # fmt: skip
def test_values_with_units(key: str, text: str, value: str | float) -> None:
    assert number(key, text) == value


@pytest.mark.parametrize(
    ("key", "text", "sentence"),
    [
        ("hold_seconds", "5 d", "hold_seconds '5 d' is not a time such as 30s"),
        ("per_second", "50/d", "per_second '50/d' is not a rate such as 50/s"),
        ("message_bytes", "1TB", "message_bytes '1TB' is not a number of bytes such as 100kB"),
    ],
)
def test_what_is_no_value_of_its_unit(key: str, text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        number(key, text)
