"""Figures are formatted for people."""

import pytest

from loadgen.units import MB_BYTES, format_bytes, format_seconds, plural


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 MB"),
        (10, "10 bytes"),
        (1, "1 byte"),
        (999.6, "1 kB"),
        (1000, "1 kB"),
        (70_000, "68 kB"),
        (1.5 * MB_BYTES, "1.5 MB"),
        (50 * MB_BYTES, "50 MB"),
        (1598 * MB_BYTES, "1,598 MB"),
        (-3 * MB_BYTES, "-3.0 MB"),
    ],
)
def test_byte_sizes_are_formatted_with_a_rounded_unit(size_bytes: float, text: str) -> None:
    assert format_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0042, "4 ms"), (0.9999, "1.00 s"), (1.234, "1.23 s"), (12.34, "12.3 s")],
)
def test_durations_are_formatted_as_milliseconds_or_seconds(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


def test_a_count_is_formatted_with_a_singular_or_plural_noun() -> None:
    assert plural(1, "client") == "1 client"
    assert plural(1000, "client") == "1,000 clients"
