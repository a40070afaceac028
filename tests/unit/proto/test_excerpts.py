"""Excerpts of arbitrarily long texts."""

import pytest

from proto.excerpts import (
    QUOTED_CHARACTERS,
    TEXT_BYTES,
    excerpt,
    one_line,
    quoted,
    without_credentials,
)

SIZES = [799, 800, 801, 5_000, 1_000_000]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("character", ["x", "ä", "€", "\U0001f600", "\n", "\x00", "\ud800"])
def test_an_excerpt_is_bounded_in_bytes_and_ends_with_a_whole_character(character, size) -> None:
    text = character * size
    shown = excerpt(text)
    line = one_line(text)
    data = shown.encode(errors="backslashreplace")
    assert len(data) <= TEXT_BYTES
    whole = len(text.encode(errors="backslashreplace")) <= TEXT_BYTES
    assert shown == text or (not whole and shown.endswith(f"... ({size} characters)"))
    assert "\ufffd" not in shown
    assert len(line.encode(errors="backslashreplace")) <= TEXT_BYTES
    assert line.isprintable() or character == "\ud800"


def test_control_characters_are_escaped_in_a_line() -> None:
    assert one_line("a\r\nb\x1b[31m\u2028\ttäglich") == r"a\r\nb\x1b[31m\u2028\ttäglich"
    assert one_line("\n" * 500) == r"\n" * 390 + "... (500 characters)"


def test_a_text_within_the_bound_is_unchanged() -> None:
    assert excerpt("") == ""
    assert excerpt("ä" * 400) == "ä" * 400
    assert excerpt("ä" * 400 + "x") == "ä" * 390 + "... (401 characters)"


def test_a_quoted_text_is_escaped_and_shortened() -> None:
    assert quoted("a\nb") == r"'a\nb'"
    assert quoted("x" * QUOTED_CHARACTERS) == repr("x" * QUOTED_CHARACTERS)
    assert quoted("\U000e0001" * 1_000_000) == (
        repr("\U000e0001" * QUOTED_CHARACTERS) + "... (1000000 characters)"
    )


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("host:6650", "host:6650"),
        ("pulsar://host", "pulsar://host"),
        ("u:s3cret@host:6650", "(hidden)@host:6650"),
        ("pulsar+ssl://u:s3cret@host", "pulsar+ssl://(hidden)@host"),
        ("u:s3cret://s3@cret\n@host", "(hidden)@host"),
        ("s3cret@", "(hidden)@"),
        ("", ""),
    ],
)
def test_credentials_in_a_url_are_hidden(url: str, shown: str) -> None:
    assert without_credentials(url) == shown
