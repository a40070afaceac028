"""A pattern that its broker leaves to the clients is warned of, by its key and with the remedy."""

from __future__ import annotations

import pytest

from loadgen.documents.patterns import pattern_warnings
from loadgen.documents.reading import parse_document

GROUP = """\
kind: discovery
cluster: {{broker: {{{keys}}}}}
load:
  namespaces: [a/b, tenant/namespace]
  groups:
    - {{name: first, clients: 1}}
    - {{name: second, family: {family}, clients: 1, pattern: {pattern}}}
"""


def warnings(text: str) -> list[str]:
    document = parse_document(text)
    return list(pattern_warnings(document.scenario, document.cluster))


def test_the_whole_pattern_counts_with_the_longest_namespace() -> None:
    # Given
    fits, too_long = "x" * 20, "x" * 21
    # When
    told = warnings(GROUP.format(keys="", family="polite", pattern=too_long))
    # Then
    assert warnings(GROUP.format(keys="", family="polite", pattern=fits)) == []
    assert told == [
        f"load.groups[1].pattern '{too_long}' behind persistent://tenant/namespace/ makes 51 "
        "characters, and a broker applies 50 at most (subscriptionPatternMaxLength) and sends the "
        "whole namespace for more: shorten it, or set cluster.broker.subscriptionPatternMaxLength "
        "to 51"
    ]


@pytest.mark.parametrize(
    ("keys", "family"), [("subscriptionPatternMaxLength: 51", "polite"), ("", "go"), ("", "cpp")]
)
def test_what_a_broker_takes_and_what_is_not_sent_is_no_matter(keys: str, family: str) -> None:
    assert not warnings(GROUP.format(keys=keys, family=family, pattern="x" * 21))


def test_a_pattern_that_is_sent_as_it_is_counts_as_java_counts() -> None:
    fits, too_long = "\N{PILE OF POO}" * 25, "\N{PILE OF POO}" * 25 + "x"
    assert warnings(f"kind: storm\nload: {{pattern: '{fits}'}}") == []
    [told] = warnings(f"kind: storm\nload: {{pattern: '{too_long}'}}")
    assert told.startswith("load.pattern ")
    assert "makes 51 characters" in told
