"""An operator's files keep keys about topic lists, and no ties to other places."""

from pathlib import Path

import pytest

from broker.configuration.config import BrokerConfig
from limiter.admission.rules import AdmissionPolicy
from loadgen.documents.server_keys import known_keys
from loadgen.errors import UsageError
from loadgen.places.launcher import ServerFiles
from loadgen.places.operator_files import (
    OwnServer,
    local_broker,
    local_proxy,
    read_own_server,
)
from proxy.config import ProxyConfig
from server.configuration.common import Profile

MB = 1024 * 1024
SHARED = {
    "clusterName": "prod",
    "bindAddress": "0.0.0.0",
    "advertisedAddress": "pulsar-7.example",
    "webServicePort": "8080",
    "webServicePortTls": "8443",
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "brokerClientAuthenticationParameters": "token:hidden",
    "haProxyProtocolEnabled": "true",
    "maxTopicListInFlightHeapMemSizeMB": "7",
    "maxTopicListInFlightDirectMemSizePermitsAcquireTimeoutMillis": "1234",
}
BROKER = {
    **SHARED,
    "brokerServicePort": "6650",
    "brokerServicePortTls": "6651",
    "tlsEnabled": "true",
    "metadataStoreUrl": "zk:zk1:2181",
    "pulsarResourcesExtendedClassName": "com.example.Resources",
    "pulsarChannelWriteBufferHighWaterMark": "131072",
    "maxMessageSize": "1000000",
    "floodgateMetadataStoreUrl": "postgresql://user:hidden@db/topics",
    "floodgateImportDirectory": "/srv/topics",
    "floodgateProfile": "floodgate",
    "floodgateAdmissionPolicy": "fair",
    "floodgateTopicListMaxBytesPerTenant": "4000000",
}
PROXY = {
    **SHARED,
    "servicePort": "6650",
    "servicePortTls": "6651",
    "brokerServiceURL": "pulsar://brokers.example:6650",
    "tlsEnabledWithBroker": "true",
    "brokerClientAuthenticationPlugin": "org.apache.pulsar.client.impl.auth.AuthenticationToken",
    "maxConcurrentInboundConnectionsPerIp": "10",
}
LOCAL_PROXY = local_proxy("pulsar://127.0.0.1:1", "http://127.0.0.1:2")


def own(keys: dict[str, str]) -> dict[str, str]:
    """Return the keys of a file without a profile."""
    return {key: value for key, value in keys.items() if key != "floodgateProfile"}


def broker_in(profile: str) -> BrokerConfig:
    """Return a broker's configuration from an operator's file in a run of a profile."""
    given = own(BROKER)
    wanted = {"floodgateProfile": profile, "maxTopicListInFlightHeapMemSizeMB": "99"}
    settings = OwnServer("broker", None, given).over(wanted, local_broker())
    return BrokerConfig.from_properties({**given, **settings})


def proxy_in(profile: str) -> ProxyConfig:
    """Return a proxy's configuration from an operator's file in a run of a profile."""
    settings = OwnServer("proxy", None, PROXY).over({"floodgateProfile": profile}, LOCAL_PROXY)
    return ProxyConfig.from_properties({**PROXY, **settings})


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
def test_servers_listen_on_the_loopback_regardless_of_the_operators_files(profile: str) -> None:
    broker, proxy = broker_in(profile), proxy_in(profile)
    for config in (broker, proxy):
        assert (config.bind_address, config.advertised_address) == ("127.0.0.1", "127.0.0.1")
        assert config.web_service_port == 0
        assert config.profile is Profile(profile)
    assert (broker.broker_service_port, broker.metadata_store_url) == (0, "memory:local")
    assert (proxy.service_port, proxy.broker_service_url) == (0, "pulsar://127.0.0.1:1")
    assert proxy.max_concurrent_inbound_connections_per_ip == 0
    assert broker.import_directory is None


@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
def test_limits_watermarks_and_message_sizes_come_from_the_operators_files(profile: str) -> None:
    for config in (broker_in(profile), proxy_in(profile)):
        assert config.topic_list_limits.heap_max_bytes == 7 * MB
        assert config.topic_list_limits.direct_max_bytes == 100 * MB
        assert config.topic_list_limits.direct_timeout_seconds == 1.234
    assert broker_in(profile).flow.rules.marks.high_bytes == 131_072
    assert broker_in(profile).max_message_size == 1_000_000


def test_floodgate_keys_apply_only_in_profile_floodgate() -> None:
    pulsar, floodgate = broker_in("pulsar"), broker_in("floodgate")
    assert pulsar.admission.policy is AdmissionPolicy.FIFO
    assert floodgate.admission.policy is AdmissionPolicy.FAIR
    assert floodgate.admission.caps.per_tenant == 4_000_000


@pytest.mark.parametrize(("role", "local"), [("broker", local_broker()), ("proxy", LOCAL_PROXY)])
def test_no_key_unknown_to_the_role_is_set(role: str, local: dict[str, str]) -> None:
    # Given keys of both roles, and an unknown key
    server = OwnServer(role, None, own({**BROKER, **PROXY, "floodgateProfil": "pulsar"}))
    settings = server.over({"floodgateProfile": "pulsar"}, local)
    assert [refusal for key in settings if (refusal := known_keys(server.role).refusal(key))] == []


def test_ignored_keys_of_the_files_are_reported_without_secrets(tmp_path: Path) -> None:
    broker, proxy = tmp_path / "broker.conf", tmp_path / "proxy.conf"
    for path, keys in ((broker, BROKER), (proxy, PROXY)):
        path.write_text("".join(f"{key}={value}\n" for key, value in keys.items()))
    cluster = ServerFiles(read_own_server("broker", broker), read_own_server("proxy", proxy))
    notes = cluster.notes()
    assert [note.partition(", as all is local here: ")[0] for note in notes] == [
        f"Set aside from {broker}",
        f"Set aside from {proxy}",
    ]
    assert "metadataStoreUrl" in notes[0]
    assert "brokerServiceURL" in notes[1]
    assert "maxTopicListInFlight" not in "".join(notes)
    settings = cluster.broker.over({"floodgateProfile": "floodgate"}, local_broker())
    assert "hidden" not in f"{notes}{settings}{cluster}"


def test_keys_that_are_off_in_the_file_are_not_reported_as_ignored() -> None:
    keys = {"authenticationEnabled": "false", "webServicePortTls": "", "maxMessageSize": "9"}
    assert OwnServer("broker", None, keys).set_aside() == []


def test_missing_server_files_are_reported() -> None:
    assert ServerFiles().notes() == [
        "Without --broker-conf the broker has Pulsar's defaults.",
        "Without --proxy-conf there is no proxy: clients ask the broker.",
    ]


def test_a_missing_or_malformed_server_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^--proxy-conf .*none\.conf: cannot be read"):
        read_own_server("proxy", tmp_path / "none.conf")
    (tmp_path / "b.conf").write_text("a b c\n=x\n")
    with pytest.raises(UsageError, match=r"--broker-conf .*line 2"):
        read_own_server("broker", tmp_path / "b.conf")


def test_an_unknown_key_is_reported_with_the_nearest_name(tmp_path: Path) -> None:
    path = tmp_path / "broker.conf"
    path.write_text("maxTopicListInFlightHeapMemSizeMb=5\nmaxMessageSize=9000000\n")
    files = ServerFiles(read_own_server("broker", path))
    assert "unknown" not in "".join(files.notes())
    assert files.warnings()[-1] == (
        f"{path}: unknown keys, ignored: maxTopicListInFlightHeapMemSizeMb "
        "(did you mean maxTopicListInFlightHeapMemSizeMB?)"
    )


def test_a_file_without_any_known_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "topics.txt"
    path.write_text("persistent://a/b/c\npersistent://a/b/d\n")
    with pytest.raises(UsageError, match=r"^--broker-conf .*topics\.txt: the broker knows none "):
        read_own_server("broker", path)


def test_all_invalid_values_of_a_server_file_are_refused_together(tmp_path: Path) -> None:
    path = tmp_path / "proxy.conf"
    path.write_text(
        "maxTopicListInFlightHeapMemSizeMB=abc\nmaxMessageSize=x\nservicePort=${PORT}\n"
    )
    with pytest.raises(UsageError) as refused:
        read_own_server("proxy", path)
    sentence = str(refused.value)
    begins = f"--proxy-conf {path}: line 1, maxTopicListInFlightHeapMemSizeMB='abc': "
    assert sentence.startswith(begins)
    assert "; line 2, maxMessageSize='x': " in sentence
    assert "servicePort" not in sentence
