"""Recorded exchanges of a real Pulsar, replayed against a broker and a proxy process.

Other servers may be the target: see ``golden_targets``. The namespace ``public/gold`` must then
hold the persistent topics alpha-1, alpha-2, beta-1, gamma.x and the partitioned topic parted (3
partitions), and ``public/msg`` the partitioned topic parted. A real proxy needs
``brokerProxyAllowedTargetPorts`` to name the broker's port.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.golden.connection import Place, replay
from tests.support.golden.exchange import Case, load_cases, load_deviations
from tests.support.golden.masks import complaint
from tests.support.golden.targets import (
    FOREIGN_BROKER,
    Target,
    golden_broker,
    golden_proxy,
    look_up,
)

pytestmark = pytest.mark.processes

GOLDEN = Path(__file__).parents[1] / "golden"
GROUPS = frozenset(
    {"connect", "lookup", "partitions", "topics", "frames", "watch", "odd", "messaging"}
)
INCOMPLETE = "messaging/exclusive_taken_over_after_close"
"""The recording is incomplete: a real broker, too, answers its requests otherwise."""
SCHEMAS = ("messaging/schemas", "broker")
"""Runs last, since the case creates its topic's first schema."""
CASES = sorted(
    (case for case in load_cases(GOLDEN, GROUPS) if case.name != INCOMPLETE),
    key=lambda case: (case.name, case.target) == SCHEMAS,
)
TUNNELLED = [case for case in CASES if case.target == "broker" and case.group == "watch"]
DEVIATIONS = load_deviations(GOLDEN / "deviations.toml")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Return a broker for all cases, prepared by import, or the environment's broker."""
    with golden_broker(tmp_path_factory.mktemp("golden-broker")) as target:
        if target.web:
            for namespace in ("public/gold", "public/msg"):
                look_up(target, namespace)
        yield target


@pytest.fixture(scope="module")
def proxy(broker: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Return a proxy before the broker, or the environment's proxy."""
    with golden_proxy(tmp_path_factory.mktemp("golden-proxy"), broker) as target:
        if not target.address:
            pytest.skip("FLOODGATE_GOLDEN_PROXY names no proxy to replay this against.")
        yield target


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.target}-{case.name}")
def test_every_recorded_field_agrees(case: Case, request: pytest.FixtureRequest) -> None:
    target: Target = request.getfixturevalue(case.target)
    broker: Target = request.getfixturevalue("broker")
    found = replay(case, Place(target.address, broker.address, broker.web))
    deviation = None if FOREIGN_BROKER else DEVIATIONS.get((case.name, case.target))
    assert not complaint(found, deviation)


@pytest.mark.parametrize("case", TUNNELLED, ids=lambda case: case.name)
def test_recorded_watches_agree_through_a_tunnel(case: Case, broker: Target, proxy: Target) -> None:
    place = Place(proxy.address, broker.address, broker.web, tunnel_to=broker.address)
    found = replay(replace(case, target="tunnel"), place)
    deviation = None if FOREIGN_BROKER else DEVIATIONS.get((case.name, "broker"))
    assert not complaint(found, deviation)


def test_every_deviation_of_an_exchange_names_a_recorded_case() -> None:
    known = {(case.name, case.target) for case in CASES}
    exchanges = {key for key in DEVIATIONS if "/" in key[0]}
    unknown = sorted(exchanges - known)
    assert not unknown, f"deviations.toml names cases that are not replayed: {unknown}"


def test_each_group_is_replayed_against_broker_and_proxy() -> None:
    expected = {(group, target) for group in GROUPS for target in ("broker", "proxy")}
    replayed = {(case.group, case.target) for case in CASES}
    assert replayed == expected
