"""The proxy's configuration, from an operator's own proxy.conf."""

import pytest

from proxy.config import PortRange, ProxyConfig, known_keys
from server.configuration.file import parse_properties
from server.errors import ConfigError
from tests.support.key_files import file_of_defaults, recorded_keys

BROKER = {"brokerServiceURL": "pulsar://127.0.0.1:6650"}


def config(**properties: str) -> ProxyConfig:
    return ProxyConfig.from_properties({**BROKER, **properties})


def problems(**properties: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        ProxyConfig.from_properties({**BROKER, **properties})
    return caught.value.problems


@pytest.mark.parametrize("no_default", ["null", ""])
def test_a_file_with_every_key_at_its_default_is_the_default_configuration(no_default: str) -> None:
    text = file_of_defaults("proxy", no_default)
    from_file = ProxyConfig.from_properties({**parse_properties(text, "proxy.conf"), **BROKER})
    assert from_file == config(bindAddress="0.0.0.0")


def test_every_recorded_pulsar_key_and_the_six_limiter_keys_are_known_with_their_defaults() -> None:
    known = {entry.key: entry.default for entry in known_keys()}
    for recorded in recorded_keys("proxy"):
        assert known[recorded["key"]] == recorded["default"]
    limiter_keys = [
        entry
        for entry in recorded_keys("broker")
        if entry["key"].startswith("maxTopicListInFlight")
    ]
    assert len(limiter_keys) == 6
    for recorded in limiter_keys:
        assert known[recorded["key"]] == recorded["default"]


def test_a_proxy_without_a_bind_address_listens_on_the_loopback() -> None:
    assert (config().bind_address, config().notices) == ("127.0.0.1", ())
    assert config(bindAddress="0.0.0.0").bind_address == "0.0.0.0"


def test_a_missing_broker_service_url_is_refused() -> None:
    assert problems(brokerServiceURL="") == (
        "brokerServiceURL is missing: name the broker, for example "
        "brokerServiceURL=pulsar://127.0.0.1:6650",
    )


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("pulsar://broker", "pulsar://broker:6650"),
        ("pulsar://broker:7/", "pulsar://broker:7"),
        ("pulsar://[::1]:7", "pulsar://[::1]:7"),
        ("pulsar://a,b:7", "pulsar://a:6650,b:7"),
    ],
)
def test_a_broker_service_url_without_a_port_gets_the_default_port(url: str, normal: str) -> None:
    assert config(brokerServiceURL=url).broker_service_url == normal


@pytest.mark.parametrize(
    "url",
    ["broker:6650", "http://b:1", "pulsar://", "pulsar://b:x", "pulsar://b:99999", "pulsar://[::1",
     "pulsar://user@b:1", "pulsar://b:1/path", "pulsar+ssl://b:1"],
)  # fmt: skip
def test_an_invalid_broker_service_url_is_refused(url: str) -> None:
    (problem,) = problems(brokerServiceURL=url)
    assert problem.startswith(f"brokerServiceURL={url!r}: ")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("haProxyProtocolEnabled", "true"),
        ("servicePortTls", "6651"),
        ("webServicePortTls", "8443"),
        ("brokerClientAuthenticationPlugin", "org.example.Token"),
    ],
)
def test_a_security_key_that_cannot_be_honored_is_refused(key: str, value: str) -> None:
    (problem,) = problems(**{key: value})
    assert problem.startswith(key)


@pytest.mark.parametrize(
    ("ports", "ranges"),
    [
        ("6650", (PortRange(6650, 6650),)),
        ("1-3, 7", (PortRange(1, 3), PortRange(7, 7))),
        ("*", (PortRange(1, 65535),)),
    ],
)
def test_allowed_target_ports_are_read_as_ranges(ports: str, ranges: tuple[PortRange, ...]) -> None:
    made = config(brokerProxyAllowedTargetPorts=ports)
    assert made.broker_proxy_allowed_target_ports == ranges


@pytest.mark.parametrize("ports", ["x", "3-1", "0", "65536", "1-", "-1", "٣"])
def test_invalid_target_ports_are_refused(ports: str) -> None:
    (problem,) = problems(brokerProxyAllowedTargetPorts=ports)
    assert problem.startswith("brokerProxyAllowedTargetPorts=")


def test_all_problems_of_a_configuration_are_reported_together() -> None:
    found = problems(
        servicePort="x",
        brokerServiceURL="b",
        authorizationEnabled="true",
        maxTopicListInFlightHeapMemSizeMB="much",
        maxMessageSize="0",
    )
    assert {problem.split("=")[0] for problem in found} == {
        "servicePort",
        "brokerServiceURL",
        "authorizationEnabled",
        "maxTopicListInFlightHeapMemSizeMB",
        "maxMessageSize",
    }
    assert len(found) == 5


def test_configuration_keys_set_their_fields() -> None:
    made = config(
        servicePort="0",
        maxConcurrentLookupRequests="5",
        maxConcurrentInboundConnections="6",
        maxConcurrentInboundConnectionsPerIp="7",
        maxTopicListInFlightDirectMemSizeMB="1",
        brokerProxyAllowedHostNames="*.example.com,b",
        brokerProxyConnectTimeoutMs="2500",
    )
    assert (made.service_port, made.max_concurrent_lookup_requests) == (0, 5)
    assert made.max_concurrent_inbound_connections == 6
    assert made.max_concurrent_inbound_connections_per_ip == 7
    assert made.topic_list_limits.direct_max_bytes == 1_048_576
    assert made.broker_proxy_allowed_host_names == ("*.example.com", "b")
    assert made.broker_proxy_connect_timeout_seconds == 2.5


def test_the_keys_of_http_forwarding_set_their_fields() -> None:
    found = config(
        brokerWebServiceURL="http://broker:8080/",
        httpProxyTimeout="7000",
        httpInputMaxReplayBufferSize="100",
        maxConcurrentHttpRequests="3",
    )
    assert found.broker_web_service_url == "http://broker:8080"
    assert found.http_proxy_timeout_seconds == 7.0
    assert found.http_input_max_replay_buffer_size == 100
    assert found.max_concurrent_http_requests == 3


@pytest.mark.parametrize(
    "url", ["https://broker:8443", "broker:8080", "http://a:1,b:2", "http://x/path", "http://[x"]
)
def test_an_invalid_broker_web_service_url_is_refused(url: str) -> None:
    assert "expected one address, http://host:port" in problems(brokerWebServiceURL=url)[0]


def test_reverse_proxies_are_configured_by_pairs_of_keys() -> None:
    found = config(
        **{
            "httpReverseProxy.one.path": "/one",
            "httpReverseProxy.one.proxyTo": "http://127.0.0.1:9000/base/",
            "httpReverseProxy.2.path": "/two/x",
            "httpReverseProxy.2.proxyTo": "https://two",
            "httpReverseProxy.2.forwardAuthorization": "true",
        }
    )
    assert found.http_reverse_proxies == (
        ("/one", "http://127.0.0.1:9000/base", False),
        ("/two/x", "https://two", True),
    )
    assert known_keys().refusal("httpReverseProxy.one.path") is None


@pytest.mark.parametrize(
    "keys",
    [
        {"httpReverseProxy.x.path": "/x"},
        {"httpReverseProxy.x.path": "x", "httpReverseProxy.x.proxyTo": "http://h"},
        {"httpReverseProxy.x.path": "/x", "httpReverseProxy.x.proxyTo": "ftp://h"},
        {"httpReverseProxy.x": "/x"},
    ],
)
def test_an_incomplete_or_invalid_reverse_proxy_is_refused(keys: dict[str, str]) -> None:
    assert problems(**keys)[0].startswith("httpReverseProxy.x: expected")


def test_a_negative_timeout_is_refused_with_its_original_value() -> None:
    keys = {"brokerServiceURL": "pulsar://b:1", "brokerProxyConnectTimeoutMs": "-1"}
    with pytest.raises(ConfigError) as caught:
        ProxyConfig.from_properties(keys)
    assert caught.value.problems == (
        "brokerProxyConnectTimeoutMs='-1': expected a whole number from 0 to 2147483647",
    )
