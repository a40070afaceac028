from collections.abc import Callable
from pathlib import Path

import pytest

from server.configuration.file import (
    MAX_FILE_BYTES,
    parse_properties,
    parse_setting,
    read_properties,
)
from server.errors import ConfigError


def test_a_setting_that_is_not_utf8_is_refused() -> None:
    text = b"clusterName=\xff".decode(errors="surrogateescape")
    with pytest.raises(ConfigError, match="--set clusterName: the value is not UTF-8 text"):
        parse_setting(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("key=value", {"key": "value"}),
        ("key:value", {"key": "value"}),
        ("key value", {"key": "value"}),
        ("  key \t = \t value with blanks ", {"key": "value with blanks "}),
        ("key=", {"key": ""}),
        ("key = a=b:c", {"key": "a=b:c"}),
        ("# comment\n! comment\n\n  # indented\nkey=1", {"key": "1"}),
        ("key=1\nkey=2", {"key": "2"}),
        ("key=a,\\\n    b", {"key": "a,b"}),
        ("key=a\\\\\nother=b", {"key": "a\\", "other": "b"}),
        ("# a comment does not go on \\\nkey=1", {"key": "1"}),
        ("key=1\\", {"key": "1"}),
        (r"key=a\tb\nc\\d\:e\qf", {"key": "a\tb\nc\\d:eqf"}),
        (r"key=\u00e4\ud83d\ude00", {"key": "ä😀"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("key=one\x0bline\x1c", {"key": "one\x0bline\x1c"}),
    ],
)
def test_properties_are_read_as_by_java(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text, "broker.conf") == expected


@pytest.mark.parametrize(
    "line", ["novalue", "=value", "<configuration>", "{", "key=\\u00g1", "- item", "ke\\u0021y=1"]
)
def test_a_malformed_line_is_named_with_file_and_number(line: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_properties(f"good=1\n\n{line}\n", "broker.conf")
    (problem,) = caught.value.problems
    assert problem.startswith("broker.conf, line 3: ")


def test_an_escaped_separator_belongs_to_the_key() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_properties(r"a\=b=c", "f")
    # No key of Pulsar contains =, so the whole line is refused
    assert caught.value.problems == (
        r"f, line 1: 'a\\=b' is not key=value; put # before a comment",
    )


def test_every_malformed_line_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_properties("one\nkey=a\\\n  b\ntwo", "f")
    # A continued line counts as several lines
    assert [problem.split(":")[0] for problem in caught.value.problems] == [
        "f, line 1",
        "f, line 4",
    ]


def test_a_file_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_bytes(b"a=1\nb=\xff\n")
    with pytest.raises(ConfigError) as caught:
        read_properties(file)
    assert caught.value.problems == (f"{file}, line 2: not UTF-8 text; save the file as UTF-8",)


def test_a_byte_order_mark_is_not_part_of_the_first_key(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_bytes("\ufeffkey=1".encode())
    assert read_properties(file) == {"key": "1"}


def test_an_unreadable_file_is_a_single_problem_with_its_path(tmp_path: Path) -> None:
    large = tmp_path / "large.conf"
    large.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    for path in (tmp_path / "missing.conf", tmp_path, large):
        with pytest.raises(ConfigError) as caught:
            read_properties(path)
        (problem,) = caught.value.problems
        assert str(path) in problem


def test_a_setting_may_contain_equal_signs_and_be_empty() -> None:
    assert parse_setting("key = a=b ") == ("key", "a=b")
    assert parse_setting("key=") == ("key", "")


@pytest.mark.parametrize("text", ["key", "=value", "", "a b=1"])
def test_a_malformed_setting_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not key=value"):
        parse_setting(text)


@pytest.mark.parametrize("read", [lambda text: parse_properties(text, "f"), parse_setting])
def test_a_secret_in_place_of_a_key_is_not_repeated_in_the_message(
    read: Callable[[str], object],
) -> None:
    with pytest.raises(ConfigError, match="is not key=value") as refused:
        read("planted0123456789")
    assert "planted01" not in str(refused.value)
