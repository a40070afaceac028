"""Fragments are valid server files, with only the advised keys."""

import json
from pathlib import Path

import pytest
from pydantic_core import to_json

from broker.configuration.config import BrokerConfig
from loadgen.documents.model import Profile
from loadgen.documents.reading import read_document
from loadgen.documents.service_times import PULSAR
from loadgen.jvm_options import JvmOptions
from loadgen.results.expectations import parse_expectation
from loadgen.studies.advise.advice import Advice, advise
from loadgen.studies.advise.goal import Goal
from loadgen.studies.advise.limits import FLOW_KEYS, KEYS, TITLES, Limits, Setting, limits_of
from loadgen.studies.advise.report import (
    document_of,
    fragment,
    heads,
    markdown,
    rows,
    sure,
    write,
)
from server.configuration.file import parse_properties
from tests.unit.loadgen.studies.advise.asked import needs, question


def advice(profile: Profile = "pulsar", *, proxy: bool = True) -> Advice:
    tight = Limits(heap_mb=5, direct_mb=5)
    today = Setting(tight, tight if proxy else None)
    goal = Goal(back_within_seconds=65)
    return advise(question(goal=goal, profile=profile, today=today), needs(5, 19))


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
def test_a_fragment_holds_the_advised_values_in_the_format_of_pulsars_files(
    profile: Profile,
) -> None:
    given = advice(profile)
    keys = parse_properties(fragment(given, "broker"), "broker.conf")
    assert given.setting is not None
    assert keys == given.setting.broker.keys()
    assert set(keys) == set(KEYS.values())
    assert limits_of(keys) == given.setting.broker


def test_the_fragment_of_a_pulsar_proxy_holds_no_key_unknown_to_the_proxy() -> None:
    text = fragment(advice(), "proxy")
    assert set(parse_properties(text, "proxy.conf")) == set(KEYS.values()) - FLOW_KEYS
    assert "has no pulsarChannel" in text
    assert set(parse_properties(fragment(advice("floodgate"), "proxy"), "proxy.conf")) > FLOW_KEYS


def test_a_floodgate_broker_accepts_the_advised_fragment() -> None:
    keys = parse_properties(fragment(advice("floodgate"), "broker"), "broker.conf")
    config = BrokerConfig.from_properties(keys)
    assert config.topic_list_limits.heap_max_bytes == int(keys[KEYS["heap_mb"]]) * 1024 * 1024


def test_every_key_is_reported_with_its_current_value_and_the_reason() -> None:
    text, told = markdown(advice(proxy=False)), rows(advice(proxy=False))
    assert [title for title, *_ in told] == [*TITLES.values()]
    assert "| heap MB | 5 | 8 | first guesses, largest list |" in text
    assert "| heap queue | 10000 | 10000 | stays as it is |" in text
    assert text.index("as shipped.") < text.index("pulsarChannelPauseReceivingCooldownMs=5000")


def test_a_table_of_proxy_and_broker_labels_the_value_of_each() -> None:
    given = advice()
    waits = dict(zip(heads(given), rows(given)[2], strict=True))
    assert given.setting is not None
    proxy, broker = (given.setting.of(each).heap_timeout_millis for each in ("proxy", "broker"))
    assert proxy != broker
    assert (waits["proxy / broker"], waits["advised"]) == ("heap wait ms", f"{proxy} / {broker}")
    assert heads(advice(proxy=False))[0] == "key"


def test_the_smallest_passing_limits_are_reported_for_proxy_and_broker() -> None:
    given = advice()
    assert given.edge is not None
    assert given.edge.proxy is not None
    assert given.edge.proxy != given.edge.broker
    told = " ".join(sure(given))
    assert f"proxy {given.edge.proxy.heap_mb} MB heap" in told
    assert f"broker {given.edge.broker.heap_mb} MB heap" in told


def test_disabled_limits_of_proxy_and_broker_are_reported_as_off() -> None:
    today = Setting(Limits(heap_mb=0, direct_mb=20), Limits(heap_mb=5, direct_mb=-1))
    heap, direct = rows(advise(question(today=today), needs(5, 19)))[:2]
    assert (heap[1], direct[1]) == ("5 / 0 (off)", "-1 (off) / 20")
    assert str(today) == (
        "proxy 5 MB heap, direct without a limit; broker heap without a limit, 20 MB direct"
    )


def test_the_rest_of_the_jvm_memory_is_reported_if_the_jvm_options_are_known() -> None:
    tight = Setting(Limits(heap_mb=5, direct_mb=5))
    asked = question(goal=Goal(65), today=tight, jvm=JvmOptions(heap=64 * 2**20))
    told = " ".join(sure(advise(asked, needs(5, 5))))
    assert "The broker's heap limit leaves" in told


def test_an_advice_names_the_source_of_its_service_times() -> None:
    slow = advise(question(times=PULSAR.scaled(2)), needs(5, 5))
    told = [sure(each)[-1] for each in (advice(), slow)]
    assert "with the times of a recorded broker: `loadgen measure` takes those of yours." in told[0]
    assert "with the times that you gave." in told[1]


def test_an_advice_without_a_setting_removes_the_files_of_an_older_advice(tmp_path: Path) -> None:
    write(advice(), tmp_path)
    hopeless = advise(question(goal=Goal(accounted_mb=2)))
    names = [path.name for path in write(hopeless, tmp_path)]
    assert names == ["advice.md", "advice.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def test_the_scenario_that_checks_the_advice_has_its_limits_and_goal(tmp_path: Path) -> None:
    write(advice(proxy=False), tmp_path)
    document = read_document(str(tmp_path / "advice.yaml"), (), parse_expectation)
    assert document.servers.broker[KEYS["direct_mb"]] == "19"
    assert document.servers.service_times == PULSAR
    assert document.topics.per_namespace == 40_000
    assert document.clients[0].count == 40
    assert document.expect == (
        "clients.back.p99.9 <= 65s",
        "clients.refused.rate <= 0.1%",
    )


def test_the_json_advice_holds_the_verdict_the_settings_and_the_question() -> None:
    told = json.loads(to_json(document_of(advice())))
    assert told["met"]
    assert told["settings"]["proxy"][KEYS["heap_mb"]] == "8"
    assert told["question"]["largest"]["topics"] == 40_000
    assert told["question"]["groups"][0]["count"] == 40
