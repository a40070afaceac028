"""Cases are made by seed, and of every class."""

from __future__ import annotations

from collections import Counter

import pytest

from proto import PulsarApi_pb2 as pb
from tests.differential.cases import HASH_TOKEN, NAMESPACE, NAMESPACE_TOKEN, wire_bytes
from tests.differential.generator import LEAST_STEPS, MOST_STEPS, cases, preparation, shared_worlds
from tests.support.golden.exchange import RECORDED_BROKER, Rest, Send

ENOUGH = 1_000


def test_the_same_seed_makes_the_same_cases() -> None:
    assert cases(7, 60) == cases(7, 60)
    assert cases(7, 60)[:30] == cases(7, 30)
    assert shared_worlds(7) == shared_worlds(7)
    assert cases(7, 60) != cases(8, 60)


@pytest.mark.parametrize("through_proxy", [False, True])
def test_every_class_comes_often_enough(through_proxy: bool) -> None:
    # When
    made = cases(3, ENOUGH, through_proxy=through_proxy)
    kinds = Counter(step.kind for case in made for step in case.steps)
    # Then
    modes = ("ALL", "PERSISTENT", "NON_PERSISTENT", "default")
    wanted = {"CONNECT", "CONNECT again", "LOOKUP", "PING", "PONG"}
    wanted |= {f"GET_TOPICS {mode}" for mode in modes}
    wanted |= {f"PARTITIONED_METADATA{flag}" for flag in ("", " auto", " no auto")}
    if not through_proxy:
        wanted |= {"WATCH_TOPIC_LIST", "WATCH_TOPIC_LIST_CLOSE", "REST change"}
    raw = sum(number for kind, number in kinds.items() if kind.startswith("raw"))
    assert not {kind for kind in wanted if kinds[kind] < ENOUGH / 100}
    assert raw >= ENOUGH / 100
    assert not {kind for kind in kinds if not kind.startswith("raw")} - wanted


def test_a_case_has_a_few_steps_and_changes_only_a_namespace_of_its_own() -> None:
    for case in cases(5, 300):
        assert LEAST_STEPS <= len(case.steps) <= MOST_STEPS
        changes = any(isinstance(step.does, Rest) for step in case.steps)
        assert case.shared is None or not changes


def test_a_world_is_made_by_calls_that_name_its_namespace() -> None:
    # When
    calls = preparation(shared_worlds(1)[1])
    # Then
    assert calls[0].path.endswith(NAMESPACE)
    assert all(NAMESPACE in call.path for call in calls)


def test_tokens_are_replaced_by_as_many_bytes() -> None:
    # Given
    command = pb.BaseCommand(type=pb.BaseCommand.GET_TOPICS_OF_NAMESPACE)
    command.getTopicsOfNamespace.request_id = 1
    command.getTopicsOfNamespace.namespace = NAMESPACE
    command.getTopicsOfNamespace.topics_hash = HASH_TOKEN
    name = "x" * len(NAMESPACE_TOKEN)
    # When
    data = wire_bytes(Send(command), name, "12345678", "b:1")
    # Then
    sent = pb.BaseCommand.FromString(data[8:]).getTopicsOfNamespace
    assert (sent.namespace, sent.topics_hash) == (f"public/{name}", "12345678")


def test_the_broker_that_a_command_names_is_the_servers() -> None:
    # Given
    connect = pb.CommandConnect(client_version="x", proxy_to_broker_url=RECORDED_BROKER)
    command = pb.BaseCommand(type=pb.BaseCommand.CONNECT, connect=connect)
    # When
    data = wire_bytes(Send(command), NAMESPACE_TOKEN, "00000000", "10.0.0.1:7")
    # Then
    assert pb.BaseCommand.FromString(data[8:]).connect.proxy_to_broker_url == "10.0.0.1:7"
