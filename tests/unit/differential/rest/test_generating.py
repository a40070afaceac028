"""Exchanges of REST calls come from their seed alone, and ask everything."""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest

from tests.differential.rest.calls import PLAIN
from tests.differential.rest.endpoints import ENDPOINTS
from tests.differential.rest.generating import LEAST_CALLS, MOST_CALLS, _Deck, exchanges
from tests.differential.rest.oddities import ODDITIES

MADE = list(exchanges(7, 3_000))
CALLS = [call for exchange in MADE for call in exchange.calls]


def test_the_same_seed_makes_the_same_calls() -> None:
    assert list(exchanges(7, 3_000)) == MADE
    assert list(exchanges(8, 3_000)) != MADE


def test_an_exchange_has_two_to_six_calls_in_a_tenant_of_its_own() -> None:
    assert {len(exchange.calls) for exchange in MADE} == set(range(LEAST_CALLS, MOST_CALLS + 1))
    assert len({exchange.tenant for exchange in MADE}) == len(MADE)
    # None is the beginning of another's, by which leftovers are removed.
    assert len({len(exchange.tenant) for exchange in MADE}) == 1


def test_each_method_of_each_path_is_asked_at_least_thirty_times() -> None:
    # When
    counts = Counter(call.kind for call in CALLS)
    # Then
    assert set(counts) == {endpoint.kind for endpoint in ENDPOINTS}
    assert min(counts.values()) >= 30


def test_each_oddity_is_done_as_often_as_any_and_most_calls_have_none() -> None:
    # When
    counts = Counter(call.oddity for call in CALLS)
    # Then
    assert set(counts) == {oddity.name for oddity in ODDITIES} | {PLAIN}
    assert counts.pop(PLAIN) > 0.55 * len(CALLS)
    assert max(counts.values()) - min(counts.values()) <= 2


def test_a_deck_of_which_nothing_fits_ends() -> None:
    with pytest.raises(ValueError, match="nothing that is dealt fits"):
        _Deck(Random(1), 2).deal(lambda _: False)


def test_nothing_that_others_need_is_changed() -> None:
    # When
    changing = [call for call in CALLS if call.method in {"PUT", "POST", "DELETE"}]
    changed = {part for call in changing for part in call.path.partition("?")[0].split("/")}
    # Then
    assert not {"clusters", "public", "pulsar"} & changed


def test_calls_are_about_what_calls_before_them_made() -> None:
    # Given
    plain = [call for call in CALLS if call.oddity == PLAIN]
    asked = [call for call in plain if call.kind.endswith("{topic}/properties")]
    made = {call.path.partition("?")[0] for call in CALLS if call.method == "PUT"}
    # When
    topics = [
        re.sub(r"(-partition-\d+)?/properties$", "", call.path.partition("?")[0]) for call in asked
    ]
    found = [topic for topic in topics if {topic, f"{topic}/partitions"} & made]
    # Then
    assert len(found) > 0.4 * len(asked)
