"""The brokers permitted as pipe targets."""

import pytest

from proxy.pipe.allowed_targets import BrokerTargets, loopback_address
from tests.support.processes.cluster import proxy_config


async def allowed(target: str, **keys: str) -> tuple[str, int] | None:
    config = proxy_config({"brokerServiceURL": "pulsar://10.0.0.9:7777", **keys})
    return await BrokerTargets(config).allowed(target)


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
async def test_by_default_only_the_configured_broker_and_loopback_brokers_are_allowed(
    target, expected
) -> None:
    assert await allowed(target) == expected


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
async def test_allowed_ports_host_names_and_addresses_narrow_or_widen_the_targets(
    keys, open_to
) -> None:
    targets = ["127.0.0.1:6650", "localhost:6650", "127.0.0.1:80", "127.0.0.2:6651"]
    found = {target for target in targets if await allowed(target, **keys)}
    assert found == open_to
    assert await allowed("10.0.0.9:7777", **keys) is not None


@pytest.mark.parametrize("host", ["a..b", "a" * 70, "x\ud800"])
async def test_an_invalid_host_name_is_not_allowed(host: str) -> None:
    assert await allowed(f"{host}:6650", brokerProxyAllowedIPAddresses="127.0.0.0/8") is None


def test_a_loopback_address_is_recognized_without_name_resolution() -> None:
    assert loopback_address("localhost") == "127.0.0.1"
    assert loopback_address("127.1.2.3") == "127.1.2.3"
    assert loopback_address("10.0.0.1") is None
    assert loopback_address("anything") is None


@pytest.mark.parametrize(
    ("keys", "target", "expected"),
    [
        ({"brokerProxyAllowedHostNames": "broker-*"}, "broker-2:6650", ("broker-2", 6650)),
        ({"brokerProxyAllowedHostNames": "broker-*"}, "broker-2:22", None),
        ({"brokerProxyAllowedHostNames": "broker-*"}, "other:6650", None),
        ({"brokerProxyAllowedIPAddresses": "10.1.0.0/16"}, "10.1.2.3:6650", ("10.1.2.3", 6650)),
        ({"brokerProxyAllowedIPAddresses": "10.1.0.0/16"}, "10.2.2.3:6650", None),
        (
            {"brokerProxyAllowedHostNames": "b*", "brokerProxyAllowedIPAddresses": "10.1.0.0/16"},
            "10.1.2.3:6650",
            None,
        ),
    ],
)
async def test_only_hosts_that_match_the_configured_names_and_addresses_are_allowed(
    keys, target, expected
) -> None:
    assert await allowed(target, **keys) == expected


async def test_a_host_name_is_resolved_and_checked_against_the_allowed_addresses(
    monkeypatch,
) -> None:
    async def addresses(host: str) -> list[str]:
        return {"broker-2": ["192.0.2.1", "10.1.2.3"], "broker-3": ["192.0.2.1"]}.get(host, [])

    monkeypatch.setattr("proxy.pipe.allowed_targets._addresses", addresses)
    keys = {"brokerProxyAllowedIPAddresses": "10.1.0.0/16"}
    # The permitted address is the connected address
    assert await allowed("broker-2:6650", **keys) == ("10.1.2.3", 6650)
    assert await allowed("broker-3:6650", **keys) is None
    assert await allowed("nowhere:6650", **keys) is None


async def test_a_redirect_may_lead_only_to_allowed_hosts_at_the_ports_of_brokers() -> None:
    keys = {"brokerServiceURL": "pulsar://broker:6650", "brokerWebServiceURL": "http://broker:8080"}
    targets = BrokerTargets(proxy_config(keys))
    for port in (8080, 6650, 6651):
        assert await targets.allows_redirect("broker", port)
        assert await targets.allows_redirect("127.0.0.1", port)
        assert not await targets.allows_redirect("198.51.100.7", port)
    for other in (22, 8081, 443, None):
        assert not await targets.allows_redirect("broker", other)
