"""The broker's configuration, from an operator's own broker.conf."""

from dataclasses import FrozenInstanceError

import pytest

from broker.configuration.config import BrokerConfig, known_keys
from broker.patterns.pattern import RegexImplementation
from examples.policies.expected_wait import ExpectedWait
from limiter.admission.caps import AdmissionCaps
from limiter.admission.rules import AdmissionPolicy, AdmissionRules
from limiter.flow.outbound_buffer import WriteBufferMarks
from limiter.memory.size_estimate import SizeEstimate
from server.configuration.common import Profile, ResponseBuffers, TopicListLimits
from server.configuration.file import parse_properties
from server.configuration.known_keys import Notice
from server.errors import ConfigError
from tests.support.key_files import file_of_defaults, recorded_keys


def config(**properties: str) -> BrokerConfig:
    return BrokerConfig.from_properties(properties)


def problems(**properties: str) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties(properties)
    return caught.value.problems


def loud(notices: tuple[Notice, ...]) -> list[str]:
    quiet = ("advertisedAddress", "bindAddress")
    return [one.sentence for one in notices if not any(key in one.sentence for key in quiet)]


@pytest.mark.parametrize("no_default", ["null", ""])
def test_a_file_with_every_key_at_its_default_is_the_default_configuration(no_default: str) -> None:
    text = file_of_defaults("broker", no_default)
    from_file = BrokerConfig.from_properties(parse_properties(text, "broker.conf"))
    # An explicit value wins over a profile's default
    said = {
        "pulsarChannelPauseReceivingRequestsIfUnwritable": "false",
        "bindAddress": "0.0.0.0",
        "brokerDeleteInactiveTopicsEnabled": "true",
        "maxMessagePublishBufferSizeInMB": "3014",
    }
    assert from_file == config(**said)
    assert loud(from_file.notices) == []


def test_every_recorded_key_is_known_with_its_default() -> None:
    known = {entry.key: entry for entry in known_keys()}
    for recorded in recorded_keys("broker"):
        entry = known[recorded["key"]]
        assert entry.default == recorded["default"]
        assert entry.dynamic == recorded.get("dynamic", False)
        assert entry.deprecated == recorded.get("deprecated", False)
        assert entry.type.startswith(recorded["type"])


def test_the_limiter_keys_are_converted_to_bytes_and_seconds() -> None:
    limits = config(
        maxTopicListInFlightHeapMemSizeMB="50",
        maxTopicListInFlightHeapMemSizePermitsAcquireQueueSize="3",
        maxTopicListInFlightHeapMemSizePermitsAcquireTimeoutMillis="3000",
        maxTopicListInFlightDirectMemSizeMB="0",
    ).topic_list_limits
    assert limits == TopicListLimits(
        heap_max_bytes=52_428_800,
        heap_queue_size=3,
        heap_timeout_seconds=3.0,
        direct_max_bytes=0,
        direct_queue_size=10_000,
        direct_timeout_seconds=25.0,
    )
    assert limits.heap.max_bytes == 52_428_800
    assert limits.direct.max_bytes == 0


@pytest.mark.parametrize(
    ("profile", "estimate", "buffers"),
    [
        ("pulsar", SizeEstimate.LAST, ResponseBuffers.PRIVATE),
        ("floodgate", SizeEstimate.EXACT, ResponseBuffers.SHARED),
    ],
)
def test_the_profile_sets_the_value_of_each_key_that_is_not_set(profile, estimate, buffers) -> None:
    by_profile = config(floodgateProfile=profile)
    chosen = config(floodgateProfile=profile, floodgateSizeEstimate="proposal")
    assert by_profile.profile is Profile(profile)
    assert (by_profile.size_estimate, by_profile.response_buffers) == (estimate, buffers)
    assert (chosen.size_estimate, chosen.response_buffers) == (SizeEstimate.PROPOSAL, buffers)


@pytest.mark.parametrize(
    ("properties", "url", "warned"),
    [
        ({}, "memory:local", False),
        ({"metadataStoreUrl": "memory:local"}, "memory:local", False),
        ({"metadataStoreUrl": "sqlite:///a.sqlite"}, "sqlite:///a.sqlite", False),
        ({"metadataStoreUrl": "postgresql://u:p@h/d"}, "postgresql://u:p@h/d", False),
        ({"metadataStoreUrl": "postgres:///d?host=/tmp"}, "postgres:///d?host=/tmp", False),
        ({"metadataStoreUrl": "zk:localhost:2181"}, "memory:local", True),
        ({"metadataStoreUrl": "localhost:2181"}, "memory:local", True),
        ({"zookeeperServers": "localhost:2181"}, "memory:local", True),
        (
            {"metadataStoreUrl": "zk:a", "floodgateMetadataStoreUrl": "sqlite:////x/y"},
            "sqlite:////x/y",
            False,
        ),
    ],
)
def test_the_floodgate_store_key_wins_and_an_unsupported_store_is_a_warning(
    properties: dict[str, str], url: str, warned: bool
) -> None:
    made = config(**properties)
    assert made.metadata_store_url == url
    assert len(loud(made.notices)) == warned
    assert all(
        notice.level == "warning"
        for notice in made.notices
        if notice.sentence in loud(made.notices)
    )


@pytest.mark.parametrize(
    "url",
    [
        *("zk:a", "sqlite:", "sqlite:///", "memory:", "sqlite://host/x"),
        *("postgresql:", "postgresql://", "postgresql://host:port/d", "postgresql://[::1/d"),
    ],
)
def test_the_floodgate_store_key_accepts_only_supported_stores(url: str) -> None:
    assert problems(floodgateMetadataStoreUrl=url) == (
        f"floodgateMetadataStoreUrl={url!r}: expected memory:local, sqlite:///path or "
        "postgresql://user@host:port/database",
    )


@pytest.mark.parametrize("url", ["postgresql://u:s3cret@h/d", "postgresql://h/d?password=s3cret"])
def test_the_repr_of_a_configuration_masks_the_password_of_its_store(url: str) -> None:
    made = config(metadataStoreUrl=url)
    assert made.metadata_store_url == url
    for shown in (repr(made), str(made)):
        assert "s3cret" not in shown
        assert "***" in shown
        assert "default_num_partitions=1" in shown


@pytest.mark.parametrize("key", ["metadataStoreUrl", "floodgateMetadataStoreUrl"])
def test_a_refused_store_url_is_reported_with_its_password_masked(key: str) -> None:
    (refused,) = problems(**{key: "postgresql://u:s3cret@host:port/d?password=s3cret"})
    assert "postgresql://u:***@host:port/d?password=***" in refused
    assert "s3cret" not in refused


@pytest.mark.parametrize("key", ["metadataStoreUrl", "floodgateMetadataStoreUrl"])
def test_a_store_url_may_come_from_a_file_or_an_environment_variable(
    tmp_path, monkeypatch, key: str
) -> None:
    url = "postgresql://u:s3cret@h/d"
    (tmp_path / "url").write_text(f"{url}\n")
    monkeypatch.setenv("STORE", url)
    for place in (f"file://{tmp_path}/url", "env:STORE"):
        made = config(**{key: place})
        assert made.metadata_store_url == url
        assert "s3cret" not in repr(made)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"s3cret", "the URL in it is none of memory:local, "),
        (b"\xff", "it is no text"),
    ],
)
def test_a_bad_store_url_file_is_refused_without_showing_its_content(
    tmp_path, content, said
) -> None:
    if content is not None:
        (tmp_path / "url").write_bytes(content)
    (refused,) = problems(metadataStoreUrl=f"file://{tmp_path}/url")
    assert refused.startswith(f"metadataStoreUrl='file://{tmp_path}/url': ")
    assert said in refused
    assert "s3cret" not in refused


@pytest.mark.parametrize("given", [{}, {"bindAddress": ""}, {"bindAddress": "127.0.0.1"}])
def test_a_broker_without_a_bind_address_listens_on_the_loopback(given: dict[str, str]) -> None:
    made = config(**given)
    assert (made.bind_address, made.advertised_address) == ("127.0.0.1", "127.0.0.1")
    assert made.notices == ()


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "10.1.2.3", "broker.example"])
def test_a_reachable_bind_address_is_honoured_with_a_single_warning(bind: str) -> None:
    made = config(bindAddress=bind, advertisedAddress="broker")
    assert made.bind_address == bind
    (notice,) = made.notices
    assert notice.level == "warning"
    assert f"bindAddress={bind}: authentication is off" in notice.sentence


@pytest.mark.parametrize("bind", ["localhost", "127.0.0.2", "::1"])
def test_a_loopback_bind_address_causes_no_warning(bind: str) -> None:
    assert config(bindAddress=bind).notices == ()


def test_an_ipv6_bind_address_may_have_brackets() -> None:
    made = config(bindAddress="[::1]")
    assert (made.bind_address, made.advertised_address) == ("::1", "::1")
    assert made.notices == ()


@pytest.mark.parametrize(
    ("bind", "advertised"),
    [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("127.0.0.1", "127.0.0.1"), ("10.1.2.3", "10.1.2.3")],
)
def test_the_advertised_address_defaults_to_the_bind_address_or_the_loopback(
    bind: str, advertised: str
) -> None:
    assert config(bindAddress=bind).advertised_address == advertised
    assert config(bindAddress=bind, advertisedAddress="broker").advertised_address == "broker"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("haProxyProtocolEnabled", "true"),
        ("webServiceHaProxyProtocolEnabled", "true"),
    ],
)
def test_an_unsupported_security_key_is_refused_instead_of_ignored(key: str, value: str) -> None:
    (problem,) = problems(**{key: value})
    assert problem.startswith(key)
    assert "does not support" in problem


def test_all_problems_of_a_configuration_are_reported_together() -> None:
    found = problems(
        webServicePort="x",
        numIOThreads="many",
        authenticationEnabled="true",
        pulsarChannelWriteBufferHighWaterMark="1000",
        pulsarChannelWriteBufferLowWaterMark="1001",
        floodgateAdmissionPolicy="fifo",
        floodgateTopicListMaxBytesPerTenant="1000",
        pulsarResourcesExtendedClassName="com.example.Mine",
        maxMessageSize="0",
        defaultNumPartitions="0",
    )
    assert [problem.split("=")[0] for problem in found] == [
        "webServicePort",
        "numIOThreads",
        "maxMessageSize",
        "defaultNumPartitions",
        "pulsarChannelWriteBufferLowWaterMark",
        "floodgateTopicListMaxBytesPerTenant",
        "authenticationEnabled",
        "pulsarResourcesExtendedClassName",
    ]


@pytest.mark.parametrize(
    "key",
    [
        "floodgateTopicListMaxBytesPerConnection",
        "floodgateTopicListMaxBytesPerNamespace",
        "floodgateTopicListMaxBytesPerTenant",
        "floodgateTopicListOverdraftMaxBytes",
    ],
)
def test_keys_of_fair_admission_are_refused_with_fifo(key: str) -> None:
    (problem,) = problems(floodgateProfile="pulsar", **{key: "1000"})
    assert problem.startswith(f"{key}=1000")
    assert "floodgateAdmissionPolicy=fair" in problem


def test_the_admission_policy_is_the_profiles_unless_its_key_is_set() -> None:
    rules = {
        (profile, policy): BrokerConfig.from_properties(
            {"floodgateProfile": profile, "floodgateAdmissionPolicy": policy}
        ).admission.policy.value
        for profile in ("pulsar", "floodgate")
        for policy in ("", "fifo", "fair")
    }
    assert rules == {
        ("pulsar", ""): "fifo",
        ("pulsar", "fifo"): "fifo",
        ("pulsar", "fair"): "fair",
        ("floodgate", ""): "fair",
        ("floodgate", "fifo"): "fifo",
        ("floodgate", "fair"): "fair",
    }


def test_an_admission_policy_may_be_a_custom_class_in_any_profile() -> None:
    for profile in ("pulsar", "floodgate"):
        own = "examples.policies.expected_wait:ExpectedWait"
        keys = {"floodgateProfile": profile, "floodgateAdmissionPolicy": own}
        rules = BrokerConfig.from_properties(keys).admission
        assert rules.policy is ExpectedWait
        assert rules.policy_name == own


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        ("fairer", "expected one of fifo, fair, or a class of Python, module:Class"),
        ("no_such:Class", "no_such cannot be imported: ModuleNotFoundError"),
        ("examples.policies.expected_wait:Missing", "has no class Missing"),
        ("collections:OrderedDict", "OrderedDict is no subclass of Admission"),
    ],
)
def test_an_unusable_admission_policy_is_refused_with_key_and_value(policy: str, told: str) -> None:
    (problem,) = problems(floodgateAdmissionPolicy=policy)
    assert problem.startswith("floodgateAdmissionPolicy=")
    assert policy in problem
    assert told in problem


def test_cap_and_overdraft_keys_reach_the_admission_rules() -> None:
    rules = BrokerConfig.from_properties(
        {
            "floodgateTopicListMaxBytesPerConnection": "1",
            "floodgateTopicListMaxBytesPerNamespace": "2",
            "floodgateTopicListMaxBytesPerTenant": "3",
            "floodgateTopicListOverdraftMaxBytes": "4",
        }
    ).admission
    assert rules == AdmissionRules(AdmissionPolicy.FAIR, 4, AdmissionCaps(1, 2, 3))


def test_water_marks_in_wrong_order_are_refused_with_both_keys() -> None:
    (problem,) = problems(pulsarChannelWriteBufferHighWaterMark="16k")
    assert "pulsarChannelWriteBufferLowWaterMark=32768" in problem
    assert "pulsarChannelWriteBufferHighWaterMark=16384" in problem


def test_plain_keys_reach_their_fields() -> None:
    made = config(
        clusterName="c1",
        brokerServicePort="0",
        webServicePort="Optional[1]",
        maxMessageSize="1000",
        maxConcurrentLookupRequest="5",
        enableBrokerTopicListWatcher="false",
        topicsPatternRegexImplementation="JDK",
        allowAutoTopicCreationType="partitioned",
        brokerShutdownTimeoutMs="1500",
        pulsarChannelWriteBufferHighWaterMark="2m",
        pulsarChannelPauseReceivingRequestsIfUnwritable="true",
        floodgateSocketSendBufferBytes="65536",
        floodgateSnapshotCacheMB="2",
        floodgateImportDirectory="imports",
    )
    assert (made.cluster_name, made.broker_service_port, made.web_service_port) == ("c1", 0, 1)
    assert (made.max_message_size, made.max_concurrent_lookup_requests) == (1000, 5)
    assert made.enable_broker_topic_list_watcher is False
    assert made.patterns.implementation is RegexImplementation.JDK
    assert made.policies.auto_topic_creation.partitions == 1
    assert made.broker_shutdown_timeout_seconds == 1.5
    assert made.flow.rules.marks == WriteBufferMarks(2 * 1024 * 1024, 32768)
    assert (made.socket_send_buffer_bytes, made.snapshot_cache_max_bytes) == (65536, 2097152)
    assert str(made.import_directory) == "imports"


def test_a_configuration_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        config().max_message_size = 8  # type: ignore[misc]


@pytest.mark.parametrize(
    ("key", "value", "least"),
    [
        ("brokerShutdownTimeoutMs", "-1", 0),
        ("metadataStoreSessionTimeoutMillis", "0", 100),
        ("httpMaxRequestHeaderSize", "0", 1),
    ],
)
def test_a_number_that_is_too_small_is_refused_as_written_with_its_range(key, value, least) -> None:
    with pytest.raises(ConfigError) as caught:
        BrokerConfig.from_properties({key: value})
    (problem,) = caught.value.problems
    assert problem.startswith(f"{key}={value!r}: expected a whole number from {least} to ")


def test_a_backlog_quota_beyond_64_bits_is_capped_at_the_largest_number() -> None:
    assert config(backlogQuotaDefaultLimitGB="1e300").policies.size_quota.limit == 2**63 - 1


def test_a_long_list_of_unknown_subscription_types_is_reported_shortened() -> None:
    given = ",".join(f"Type{number}" for number in range(100))
    with pytest.raises(ConfigError) as caught:
        config(subscriptionTypesEnabled=given)
    (problem,) = caught.value.problems
    assert problem.startswith(f"subscriptionTypesEnabled={given[:100]}: expected some of ")
