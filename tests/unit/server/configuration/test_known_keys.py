"""Values are checked against Pulsar's knowledge of the key."""

import pytest

from server.configuration.addresses import plain_port
from server.configuration.key_types import KnownKey, Value
from server.configuration.known_keys import MAX_KEYS_NAMED, KnownKeys

KEYS = KnownKeys(
    [
        KnownKey("brokerServicePort", "Optional<Integer>", "Optional[6650]", min=0, max=65535),
        KnownKey("brokerServicePortTls", "Optional<Integer>", "Optional.empty", min=0),
        KnownKey("maxMessageSize", "int", "5242880", max=2147473407),
        KnownKey("quotaBytes", "long", "-1"),
        KnownKey("enabled", "boolean", "false"),
        KnownKey("ratio", "double", "0.5"),
        KnownKey("nic", "Optional<Double>", "Optional.empty"),
        KnownKey("roles", "Set", "[b, a]"),
        KnownKey("algorithms", "List", "[b, a]"),
        KnownKey("type", "TopicType", "non-partitioned", values=("partitioned", "non-partitioned")),
        KnownKey("mark", "int", "65536", min=0, suffixes=True),
        KnownKey("name", "String", None),
    ]
)


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("brokerServicePort", "0", 0),
        ("brokerServicePort", "Optional[7]", 7),
        ("brokerServicePort", "Optional.empty", None),
        ("brokerServicePort", " ", None),
        ("brokerServicePort", "null", 6650),
        ("maxMessageSize", " +12 ", 12),
        ("quotaBytes", "9223372036854775807", 2**63 - 1),
        ("enabled", "TRUE", True),
        ("ratio", "1", 1.0),
        ("ratio", "1.5e2", 150.0),
        ("nic", "Optional[2.5]", 2.5),
        ("roles", "[]", ()),
        ("roles", "[x, y]", ("x", "y")),
        ("roles", "x,y,", ("x", "y")),
        ("type", "partitioned", "partitioned"),
        ("type", "NON_PARTITIONED", "non-partitioned"),
        ("mark", "64k", 65536),
        ("mark", "1M", 1048576),
        ("name", "anything at all", "anything at all"),
    ],
)
def test_a_value_is_read_by_the_type_of_its_key(key: str, text: str, expected: Value) -> None:
    checked = KEYS.check({key: text})
    assert checked.problems == []
    assert checked.value(key) == expected


@pytest.mark.parametrize(
    ("key", "text", "expected"),
    [
        ("brokerServicePort", "65536", "a whole number from 0 to 65535"),
        ("brokerServicePort", "-1", "a whole number from 0 to 65535"),
        ("brokerServicePort", "Optional[x]", "a whole number from 0 to 65535"),
        ("maxMessageSize", "1_000", "a whole number from -2147483648 to 2147473407"),
        ("maxMessageSize", "٣", "a whole number from -2147483648 to 2147473407"),
        ("maxMessageSize", "64k", "a whole number from -2147483648 to 2147473407"),
        ("maxMessageSize", "2147473408", "a whole number from -2147483648 to 2147473407"),
        ("quotaBytes", "9223372036854775808", f"a whole number from {-(2**63)} to {2**63 - 1}"),
        ("enabled", "yes", "true or false"),
        ("ratio", "half", "a number"),
        ("ratio", "1e999", "a number"),
        ("roles", "[a", "names separated by commas"),
        ("type", "both", "one of partitioned, non-partitioned"),
    ],
)
def test_a_wrong_value_is_refused_with_key_value_and_expectation(key, text, expected) -> None:
    assert KEYS.check({key: text}).problems == [f"{key}={text!r}: expected {expected}"]


def test_all_wrong_values_are_reported_together() -> None:
    checked = KEYS.check({"enabled": "yes", "ratio": "half", "mark": "-1", "name": "fine"})
    assert [problem.split("=")[0] for problem in checked.problems] == ["enabled", "ratio", "mark"]


def test_unknown_keys_are_a_single_warning_with_suggestions() -> None:
    checked = KEYS.check({"brokerServisePort": "1", "zzz": "1", "bookkeeper_x": "1"})
    assert checked.problems == []
    assert checked.notices == [
        (
            "warning",
            "unknown keys, ignored: brokerServisePort (did you mean brokerServicePort?), zzz",
        )
    ]


def test_a_warning_names_a_bounded_number_of_keys() -> None:
    checked = KEYS.check({f"{'y' * 1000}{number}": "" for number in range(MAX_KEYS_NAMED + 7)})
    (notice,) = checked.notices
    assert notice.sentence.endswith(" and 7 more")


def test_only_unread_keys_with_changed_values_are_reported_without_effect() -> None:
    checked = KEYS.check(
        {"enabled": "true", "ratio": "0.50", "roles": "a,b", "algorithms": "a,b", "quotaBytes": "7"}
    )
    checked.value("quotaBytes")
    # A Set has no order, a List has
    assert checked.finish() == (("info", "keys without effect here: enabled, algorithms"),)


def test_a_size_with_a_suffix_is_read_with_a_warning() -> None:
    checked = KEYS.check({"mark": "64k"})
    (notice,) = checked.notices
    assert notice.level == "warning"
    assert notice.sentence.startswith("mark=64k is read as 65536 bytes")
    assert KEYS.check({"mark": "null"}).notices == []


def test_a_plain_port_can_be_switched_off_only_with_a_tls_port() -> None:
    checked = KEYS.check({"brokerServicePort": "", "brokerServicePortTls": "0"})
    assert (plain_port(checked, "brokerServicePort"), checked.problems) == (None, [])
    checked = KEYS.check({"brokerServicePort": "Optional.empty"})
    plain_port(checked, "brokerServicePort")
    (problem,) = checked.problems
    assert problem.startswith("brokerServicePort=Optional.empty: this port cannot be switched off")
