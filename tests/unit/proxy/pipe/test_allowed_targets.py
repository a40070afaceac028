"""Which brokers a client may be piped to."""

from __future__ import annotations

import pytest

from proxy.pipe.allowed_targets import BrokerTargets, loopback_address
from tests.support.processes.cluster import proxy_config


def allowed(target: str, **keys: str) -> tuple[str, int] | None:
    return BrokerTargets(
        proxy_config({"brokerServiceURL": "pulsar://10.0.0.9:7777", **keys})
    ).allowed(target)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("10.0.0.9:7777", ("10.0.0.9", 7777)),
        ("127.0.0.1:6650", ("127.0.0.1", 6650)),
        ("127.0.0.1:6651", ("127.0.0.1", 6651)),
        ("127.8.9.10:6650", ("127.8.9.10", 6650)),
        ("localhost:6650", ("localhost", 6650)),
        ("[::1]:6650", ("::1", 6650)),
        ("10.0.0.9:7778", None),
        ("10.0.0.9:6650", None),
        ("127.0.0.1:6652", None),
        ("198.51.100.1:6650", None),
        ("0.0.0.0:6650", None),
        ("broker:6650", None),
        ("localhost.example.com:6650", None),
        ("127.0.0.1:6650:6650", None),
        ("2130706433:6650", None),
        ("", None),
    ],
)
def test_the_configured_broker_and_loopback_brokers_only(
    target: str, expected: tuple[str, int] | None
) -> None:
    assert allowed(target) == expected


@pytest.mark.parametrize(
    ("keys", "open_to"),
    [
        ({"brokerProxyAllowedTargetPorts": "6650"}, {"127.0.0.1:6650", "localhost:6650"}),
        (
            {"brokerProxyAllowedTargetPorts": "*"},
            {"127.0.0.1:6650", "localhost:6650", "127.0.0.1:80", "127.0.0.2:6651"},
        ),
        ({"brokerProxyAllowedHostNames": "local*"}, {"localhost:6650"}),
        (
            {"brokerProxyAllowedIPAddresses": "127.0.0.1/32"},
            {"127.0.0.1:6650", "localhost:6650"},
        ),
        ({"brokerProxyAllowedIPAddresses": "10.0.0.0/8, nonsense"}, set()),
    ],
)
def test_the_three_keys_narrow_and_widen_the_list(keys: dict[str, str], open_to: set[str]) -> None:
    # Given
    targets = ["127.0.0.1:6650", "localhost:6650", "127.0.0.1:80", "127.0.0.2:6651"]
    # When
    found = {target for target in targets if allowed(target, **keys)}
    # Then
    assert found == open_to
    assert allowed("10.0.0.9:7777", **keys) is not None


def test_a_loopback_address_is_told_without_asking_the_network() -> None:
    assert loopback_address("localhost") == "127.0.0.1"
    assert loopback_address("127.1.2.3") == "127.1.2.3"
    assert loopback_address("10.0.0.1") is None
    assert loopback_address("anything") is None
