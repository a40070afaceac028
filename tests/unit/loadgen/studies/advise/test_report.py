"""Fragments are what the servers read, and nothing but the keys that were advised."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from broker.configuration.config import BrokerConfig
from loadgen.documents.reading import read_document
from loadgen.documents.service_times import PULSAR
from loadgen.results.expectations import parse_expectation
from loadgen.studies.advise.advice import Advice, advise
from loadgen.studies.advise.goal import Goal
from loadgen.studies.advise.limits import FLOW_KEYS, KEYS, Limits, Setting, limits_of
from loadgen.studies.advise.report import fragment, markdown, to_json, write
from server.configuration.file import parse_properties
from tests.unit.loadgen.studies.advise.asked import needs, question

if TYPE_CHECKING:
    from pathlib import Path

    from loadgen.documents.model import Profile


def advice(profile: Profile = "pulsar", *, proxy: bool = True) -> Advice:
    today = Setting(Limits(), Limits() if proxy else None)
    goal = Goal(back_within_seconds=65)
    return advise(question(goal=goal, profile=profile, today=today), needs(5, 19))


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
def test_a_fragment_says_the_advised_values_as_pulsars_files_do(profile: Profile) -> None:
    # Given
    given = advice(profile)
    # When
    keys = parse_properties(fragment(given, "broker"), "broker.conf")
    # Then
    assert given.setting is not None
    assert keys == given.setting.broker.keys()
    assert set(keys) == set(KEYS.values())
    assert limits_of(keys) == given.setting.broker


def test_a_pulsar_proxy_is_given_none_of_the_keys_that_it_does_not_have() -> None:
    # When
    text = fragment(advice(), "proxy")
    # Then
    assert set(parse_properties(text, "proxy.conf")) == set(KEYS.values()) - FLOW_KEYS
    assert "has no pulsarChannel" in text
    assert set(parse_properties(fragment(advice("floodgate"), "proxy"), "proxy.conf")) > FLOW_KEYS


def test_our_broker_starts_with_what_was_advised() -> None:
    # When
    keys = parse_properties(fragment(advice("floodgate"), "broker"), "broker.conf")
    config = BrokerConfig.from_properties(keys)
    # Then
    assert config.topic_list_limits.heap_max_bytes == int(keys[KEYS["heap_mb"]]) * 1024 * 1024


def test_every_key_comes_with_its_reason_cost_and_neighbours() -> None:
    # When
    text = markdown(advice(proxy=False))
    # Then
    for name, key in KEYS.items():
        shipped = "mark" in name or "cooldown" in name
        assert (f"`{key}`" in text) is not shipped
    assert text.index("as shipped.") < text.index("pulsarChannelWriteBufferHighWaterMark=65536")
    assert "| **20** | the goal: one step below" in text
    assert "18: goal missed: " in text
    assert "| **5** | the largest answer: acme/big" in text


def test_an_older_advice_does_not_pass_for_one_that_found_nothing(tmp_path: Path) -> None:
    # Given
    write(advice(), tmp_path)
    hopeless = advise(question(goal=Goal(accounted_mb=2)))
    # When
    names = [path.name for path in write(hopeless, tmp_path)]
    # Then
    assert names == ["advice.md", "advice.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_the_document_that_checks_the_advice_has_its_limits_and_goal(tmp_path: Path) -> None:
    # When
    write(advice(proxy=False), tmp_path)
    document = read_document(str(tmp_path / "advice.yaml"), (), parse_expectation)
    # Then
    assert document.servers.broker[KEYS["direct_mb"]] == "20"
    assert document.servers.service_times == PULSAR
    assert document.topics.per_namespace == 40_000
    assert document.clients[0].count == 40
    assert document.expect == (
        "clients.back.p99.9 <= 65s",
        "requests.refused.rate <= 0.1%",
    )


def test_a_program_is_told_all_of_it() -> None:
    # When
    told = json.loads(json.dumps(to_json(advice())))
    # Then
    assert told["met"]
    assert told["settings"]["proxy"][KEYS["heap_mb"]] == "5"
    assert told["question"]["largest"]["topics"] == 40_000
    assert told["question"]["groups"][0]["count"] == 40
