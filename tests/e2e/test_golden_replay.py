"""The recorded exchanges of a real Pulsar, replayed against a broker and a proxy process.

The test can be turned on other servers, for one on a real Pulsar, to show that it is fair: set
``FLOODGATE_GOLDEN_BROKER=host:port`` (and ``FLOODGATE_GOLDEN_PROXY=host:port`` for a proxy in front
of it). Nothing is started then, the deviations are not applied, and the namespace ``public/gold``
must hold the persistent topics alpha-1, alpha-2, beta-1, gamma.x and the partitioned topic parted
(3 partitions). A real proxy needs ``brokerProxyAllowedTargetPorts`` to name the broker's port.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.golden import load_cases, load_deviations
from tests.support.golden_connection import replay
from tests.support.golden_masks import complaint
from tests.support.server_process import running_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.golden import Case

pytestmark = pytest.mark.processes

GOLDEN = Path(__file__).parents[1] / "golden"
GROUPS = frozenset({"connect", "lookup", "partitions", "topics", "frames"})
CASES = load_cases(GOLDEN, GROUPS)
DEVIATIONS = load_deviations(GOLDEN / "deviations.toml")
LOCAL_NAMES = [
    "alpha-1",
    "alpha-2",
    "beta-1",
    "gamma.x",
    *(f"parted-partition-{n}" for n in range(3)),
]
AS_RECORDED = ["--set", "floodgateProfile=pulsar", "--set", "bindAddress=127.0.0.1"]
AS_RECORDED += ["--set", "webServicePort=0"]


FOREIGN_BROKER = os.environ.get("FLOODGATE_GOLDEN_BROKER", "")
FOREIGN_PROXY = os.environ.get("FLOODGATE_GOLDEN_PROXY", "")


@dataclass(frozen=True)
class Target:
    """A process to replay against: where it listens, and the web port of one of our own."""

    address: str
    web_url: str = ""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One broker for all cases, prepared by import, or the one that the environment names."""
    if FOREIGN_BROKER:
        yield Target(FOREIGN_BROKER)
        return
    folder = tmp_path_factory.mktemp("golden-broker")
    names = folder / "public-gold.txt"
    names.write_text("".join(f"persistent://public/gold/{name}\n" for name in LOCAL_NAMES))
    command = ["-m", "broker", *AS_RECORDED, "--set", "brokerServicePort=0"]
    command += ["--set", "metadataStoreUrl=memory:local", "--import", str(names)]
    command += ["--set", "advertisedAddress=127.0.0.1", "--set", "clusterName=standalone"]
    with running_server(command, folder / "broker.log") as server:
        yield Target(server.address, server.web_url)


@pytest.fixture(scope="module")
def proxy(broker: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """One proxy in front of the broker, or the one that the environment names."""
    if FOREIGN_BROKER or FOREIGN_PROXY:
        yield Target(FOREIGN_PROXY)
        return
    command = ["-m", "proxy", *AS_RECORDED, "--set", "servicePort=0"]
    command += ["--set", f"brokerServiceURL=pulsar://{broker.address}"]
    command += ["--set", f"brokerWebServiceURL={broker.web_url}"]
    with running_server(command, tmp_path_factory.mktemp("golden-proxy") / "proxy.log") as server:
        yield Target(server.address, server.web_url)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.target}-{case.name}")
def test_every_recorded_field_agrees(case: Case, request: pytest.FixtureRequest) -> None:
    # Given
    target: Target = request.getfixturevalue(case.target)
    broker: Target = request.getfixturevalue("broker")
    if not target.address:
        pytest.skip("FLOODGATE_GOLDEN_PROXY names no proxy to replay this against.")
    # When
    found = replay(case, target.address, broker.address)
    # Then
    deviation = None if FOREIGN_BROKER else DEVIATIONS.get((case.name, case.target))
    assert not complaint(found, deviation)


def test_every_deviation_names_a_recorded_case() -> None:
    # Given
    known = {(case.name, case.target) for case in CASES}
    # When
    unknown = sorted(DEVIATIONS.keys() - known)
    # Then
    assert not unknown, f"deviations.toml names cases that are not replayed: {unknown}"


def test_each_group_is_replayed_against_broker_and_proxy() -> None:
    # Given
    expected = {(group, target) for group in GROUPS for target in ("broker", "proxy")}
    # When
    replayed = {(case.group, case.target) for case in CASES}
    # Then
    assert replayed == expected
