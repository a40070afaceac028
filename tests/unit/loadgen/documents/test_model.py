"""Documents that cannot be run are refused or warned of, with the remedy."""

import pytest

from loadgen.documents.model import Document
from loadgen.documents.reading import parse_document


def document(group: str, more: str = "") -> Document:
    return parse_document(f"clients: [{{name: a, {group}}}]\n{more}")


def test_topics_are_generated_or_of_the_named_namespaces() -> None:
    made = document("do: list, count: 1", "topics: {namespaces: 4, per_namespace: 2000}").topics
    named = document("do: list, count: 1", "topics: {of: [a/b, c/d]}").topics
    assert [each.topics for each in made.expected()] == [2000] * 4
    assert [each.name for each in named.expected()] == ["a/b", "c/d"]
    assert (made.made, named.made) == (True, False)


def test_further_namespaces_have_their_own_number_of_topics() -> None:
    more = "topics: {namespaces: 1, per_namespace: 9, further: [{namespaces: 2, per_namespace: 3}]}"
    topics = document("do: list, count: 1", more).topics
    assert [each.topics for each in topics.expected()] == [9, 3, 3]


def test_consumers_know_the_count_and_message_size_of_their_publishers() -> None:
    text = """\
clients:
  - {name: billing, do: consume, of: orders, count: 3}
  - {name: orders, do: publish, count: 2, size: 4KiB}
"""
    consumers = parse_document(text).clients[0]
    assert (consumers.publishers, consumers.size) == (2, 4096)


def test_clients_due_after_the_end_of_the_run_are_warned_of() -> None:
    group = "do: list, count: 20, arrive: {kind: constant, rate: 1/s}"
    [told] = document(group, "phases: {measure: 15s}").warnings
    assert told == (
        "group a: 5 of 20 clients never start: the last is due at 19.0 s, and the run ends at "
        "15.0 s; raise phases.measure, or let them arrive sooner"
    )
    assert not document(group, "phases: {measure: 20s}").warnings


@pytest.mark.parametrize(
    ("group", "keys", "length"),
    [
        ("do: list", "", 51), ("do: watch", "", 51),
        ("do: discover, library: polite", "subscriptionPatternMaxLength: 50", 51),
        ("do: discover, library: polite", "subscriptionPatternMaxLength: 51", None),
        ("do: discover, library: go", "", None), ("do: discover, library: cpp", "", None),
    ],
)  # fmt: skip
def test_a_pattern_longer_than_the_brokers_limit_is_warned_of(group, keys, length) -> None:
    text = f"topics: {{of: [a/b, tenant/namespace]}}\nservers: {{broker: {{{keys}}}}}"
    told = document(f"{group}, count: 1, pattern: {'x' * 21}", text).warnings
    assert len(told) == (length is not None)
    assert all(f"behind persistent://tenant/namespace/ makes {length} char" in one for one in told)
    assert all("set servers.broker.subscriptionPatternMaxLength to 51" in one for one in told)


def test_the_length_of_a_pattern_is_counted_in_utf_16_units_as_in_java() -> None:
    few, many = "\N{PILE OF POO}", "\N{PILE OF POO}" * 11
    text = "topics: {of: [tenant/namespace]}"
    assert not document(f"do: list, count: 1, pattern: {few}", text).warnings
    assert document(f"do: list, count: 1, pattern: {many}", text).warnings
