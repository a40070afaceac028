"""Configuration at run time: permitted changes, stored values, effective values."""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from broker.configuration.config import MISSING_PARTS, BrokerConfig, known_keys
from broker.configuration.dynamic import (
    FLOODGATE_DYNAMIC_KEYS,
    LOAD_MANAGERS,
    MASK,
    DynamicConfiguration,
)
from broker.errors import Refusal, RefusedError
from broker.stores.changes import StoreError
from broker.stores.memory import MemoryStore
from server.configuration.settings import Settings
from tests.support.authentication.credentials import PACKAGE
from tests.support.clocks.settle import settle

LOOKUPS = "maxConcurrentLookupRequest"
LOADS = "maxConcurrentTopicLoadRequest"
HEAP_MB = "maxTopicListInFlightHeapMemSizeMB"
HIGH = "pulsarChannelWriteBufferHighWaterMark"
LOW = "pulsarChannelWriteBufferLowWaterMark"


class SharedStore(MemoryStore):
    """A store with a second writing process."""

    def __init__(self, kept: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.kept = dict(kept or {})
        self.tell: Callable[[], None] = lambda: None
        self.fails = False

    async def configuration(self) -> Mapping[str, str]:
        if self.fails:
            raise StoreError("the disk is full")
        return dict(self.kept)

    async def set_configuration(self, key: str, value: str | None) -> None:
        if self.fails:
            raise StoreError("the disk is full")
        if value is None:
            self.kept.pop(key, None)
        else:
            self.kept[key] = value

    def on_configuration(self, callback: Callable[[], None]) -> None:
        self.tell = callback


class Dynamic:
    """A dynamic configuration, the store, and the applied values in order."""

    def __init__(self, keys: Mapping[str, str], kept: Mapping[str, str] | None) -> None:
        self.store = SharedStore(kept)
        self.before: list[BrokerConfig] = []
        self.started_with = BrokerConfig.from_properties(keys)
        self.dynamic = DynamicConfiguration(
            self.started_with.copied(), self.store, self.before.append
        )

    @property
    def config(self) -> BrokerConfig:
        assert self.before
        return self.dynamic.config


@pytest.fixture
async def make() -> AsyncIterator[Callable[..., object]]:
    made: list[Dynamic] = []

    async def start(kept: Mapping[str, str] | None = None, **keys: str) -> Dynamic:
        one = Dynamic(keys, kept)
        made.append(one)
        await one.dynamic.start()
        return one

    yield start
    for one in made:
        await one.dynamic.close()


async def refused(work: object) -> str:
    with pytest.raises(RefusedError) as caught:
        await work  # type: ignore[misc]
    assert caught.value.refusal is Refusal.PRECONDITION_FAILED
    return caught.value.reason


async def test_a_dynamic_value_is_stored_and_takes_effect(make: Callable[..., Dynamic]) -> None:
    one = await make()
    await one.dynamic.set(LOOKUPS, "7")
    assert one.config.max_concurrent_lookup_requests == 7
    assert one.store.kept == {LOOKUPS: "7"} == await one.dynamic.values()
    assert one.dynamic.runtime()[LOOKUPS] == "7"


async def test_deleting_a_dynamic_value_restores_the_value_of_the_file(
    make: Callable[..., Dynamic],
) -> None:
    one = await make(**{LOOKUPS: "9"})
    await one.dynamic.set(LOOKUPS, "7")
    await one.dynamic.delete(LOOKUPS)
    await one.dynamic.delete(LOOKUPS)
    assert one.config.max_concurrent_lookup_requests == 9
    assert one.store.kept == {}
    assert one.dynamic.runtime()[LOOKUPS] == "9"


@pytest.mark.parametrize(
    ("key", "value", "figure"),
    [
        (HEAP_MB, "7", lambda c: c.topic_list_limits.heap_max_bytes == 7 * 2**20),
        (
            "maxTopicListInFlightDirectMemSizePermitsAcquireQueueSize",
            "3",
            lambda c: c.topic_list_limits.direct_queue_size == 3,
        ),
        (
            "maxTopicListInFlightHeapMemSizePermitsAcquireTimeoutMillis",
            "250",
            lambda c: c.topic_list_limits.heap_timeout_seconds == 0.25,
        ),
        (HIGH, "70000", lambda c: c.flow.rules.marks.high_bytes == 70_000),
        (LOW, "20000", lambda c: c.flow.rules.marks.low_bytes == 20_000),
    ],
)
async def test_limiter_and_water_mark_keys_change_at_run_time(make, key, value, figure) -> None:
    one = await make()
    await one.dynamic.set(key, value)
    assert figure(one.config)
    assert key in one.dynamic.names


CHANGED = {
    "allowAutoTopicCreationType": "partitioned",
    "brokerDeleteInactiveTopicsEnabled": "true",
    "brokerDeleteInactiveTopicsMode": "delete_when_subscriptions_caught_up",
    "subscriptionTypesEnabled": "Shared",
    "superUserRoles": "admin",
    LOW: "1000",
}
"""Values of keys other than numbers and booleans, or that profile floodgate chooses."""
ROLES = {
    "authenticationEnabled": "true",
    "authorizationEnabled": "true",
    "anonymousUserRole": "guest",
}


def _read_and_dynamic() -> list[str]:
    read = BrokerConfig.from_properties(ROLES).keys._read - MISSING_PARTS.keys()
    return [known.key for known in known_keys() if known.dynamic and known.key in read]


def _groups(config: BrokerConfig) -> list[object]:
    """Return the configuration and its groups, as their users hold them."""
    values = [getattr(config, field.name) for field in fields(config)]
    return [config, *[value for value in values if isinstance(value, Settings)]]


@pytest.mark.parametrize("key", [*_read_and_dynamic(), *FLOODGATE_DYNAMIC_KEYS])
async def test_a_change_of_each_dynamic_key_reaches_holders_of_its_settings(make, key) -> None:
    one = await make(**ROLES)
    held, default = _groups(one.dynamic.config), known_keys()[key].default_value
    value = str(not default).lower() if isinstance(default, bool) else f"{default}1"
    value = CHANGED.get(key, value)
    await one.dynamic.set(key, value)
    changed = BrokerConfig.from_properties({**ROLES, key: value})
    assert changed != one.started_with
    assert held == _groups(changed)


@pytest.mark.parametrize("key", FLOODGATE_DYNAMIC_KEYS)
async def test_in_profile_pulsar_limiter_and_water_mark_keys_are_not_dynamic(make, key) -> None:
    one = await make(floodgateProfile="pulsar")
    reason = await refused(one.dynamic.set(key, "7"))
    assert reason == "Can't update non-dynamic configuration"
    assert key not in one.dynamic.names
    assert one.store.kept == {}


@pytest.mark.parametrize("key", ["noSuchKey", "maxMessageSize", ""])
@pytest.mark.parametrize("profile", ["pulsar", "floodgate"])
async def test_changing_or_deleting_a_non_dynamic_key_is_refused(make, key, profile) -> None:
    one = await make(floodgateProfile=profile)
    update, delete = (
        await refused(one.dynamic.set(key, "7")),
        await refused(one.dynamic.delete(key)),
    )
    assert update.startswith("Can't update non-dynamic configuration")
    assert delete.startswith("Can't delete non-dynamic configuration")


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (LOOKUPS, "abc", "maxConcurrentLookupRequest='abc': expected a whole number"),
        ("allowAutoTopicCreation", "maybe", "'maybe': expected true or false"),
        (
            "defaultNumPartitions",
            "0",
            "defaultNumPartitions='0': expected a whole number",
        ),
        (LOW, "100000", "the low mark must not be above the high mark"),
        (LOW, "0", "set at least 1"),
        (LOOKUPS, " ", "deleting it brings the file's back"),
        (LOOKUPS, "null", "deleting it brings the file's back"),
    ],
)
async def test_an_invalid_dynamic_value_is_refused_with_a_reason_and_not_stored(
    make: Callable[..., Dynamic], key: str, value: str, sentence: str
) -> None:
    one = await make()
    before = one.config.copied()
    reason = await refused(one.dynamic.set(key, value))
    assert sentence in reason
    assert one.config == before
    assert one.store.kept == {}


async def test_in_profile_pulsar_an_invalid_dynamic_value_is_stored_without_effect(
    make, caplog
) -> None:
    one = await make(floodgateProfile="pulsar")
    await one.dynamic.set(LOOKUPS, "7")
    with caplog.at_level(logging.WARNING):
        await one.dynamic.set(LOOKUPS, "abc")
    assert await one.dynamic.values() == {LOOKUPS: "abc"}
    assert one.config.max_concurrent_lookup_requests == 7
    assert "'abc'" in caplog.text


async def test_in_profile_pulsar_numbers_out_of_range_are_shown_and_block_lookups(make) -> None:
    one = await make(floodgateProfile="pulsar")
    values = {LOOKUPS: "-1", "brokerShutdownTimeoutMs": "-5", "maxConcurrentTopicLoadRequest": "0"}
    for key, value in values.items():
        await one.dynamic.set(key, value)
    shown = one.dynamic.runtime()
    again = await make(one.store.kept, floodgateProfile="pulsar")
    assert {key: shown[key] for key in values} == values
    assert {key: again.dynamic.runtime()[key] for key in values} == values
    assert [one.config.max_concurrent_lookup_requests for one in (one, again)] == [0, 0]
    await again.dynamic.delete("brokerShutdownTimeoutMs")
    assert again.dynamic.runtime()["brokerShutdownTimeoutMs"] == "60000"


@pytest.mark.parametrize("value", ["x", "99999999999", "1.5", "-"])
async def test_in_profile_pulsar_a_value_that_is_no_java_number_is_not_shown(make, value) -> None:
    one = await make(floodgateProfile="pulsar")
    await one.dynamic.set(LOOKUPS, value)
    assert one.dynamic.runtime()[LOOKUPS] == "50000"


@pytest.mark.parametrize(
    ("profile", "sentence"),
    [("pulsar", " Invalid dynamic-config value"), ("floodgate", "'no.such.Class': no such class")],
)
async def test_a_missing_load_manager_class_is_refused(
    make: Callable[..., Dynamic], profile: str, sentence: str
) -> None:
    one = await make(floodgateProfile=profile)
    key = "loadManagerClassName"
    reason = await refused(one.dynamic.set(key, "no.such.Class"))
    await one.dynamic.set(key, LOAD_MANAGERS[0])
    assert sentence in reason
    assert one.store.kept == {key: LOAD_MANAGERS[0]}


async def test_stored_dynamic_values_override_the_file_at_the_next_start(make) -> None:
    one = await make({LOOKUPS: "7", HEAP_MB: "5"}, **{LOOKUPS: "9"})
    assert one.config.max_concurrent_lookup_requests == 7
    assert one.config.topic_list_limits.heap_max_bytes == 5 * 2**20


async def test_an_invalid_stored_value_is_logged_and_the_remaining_values_apply(
    make: Callable[..., Dynamic], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        one = await make({LOOKUPS: "abc", "defaultNumPartitions": "4"})
    assert one.config.default_num_partitions == 4
    assert one.config.max_concurrent_lookup_requests == 50_000
    assert "set at run time, and without effect: maxConcurrentLookupRequest='abc'" in caplog.text


async def test_stored_values_that_depend_on_each_other_apply_beside_an_invalid_value(make) -> None:
    # The low mark is valid only after the high mark is applied
    one = await make({LOW: "100000", HIGH: "200000", LOOKUPS: "abc"})
    marks = one.config.flow.rules.marks
    assert (marks.low_bytes, marks.high_bytes) == (100_000, 200_000)


async def test_a_stored_value_takes_effect_once_another_value_makes_it_valid(
    make: Callable[..., Dynamic],
) -> None:
    one = await make({LOW: "60000"}, **{HIGH: "50000", LOW: "1000"})
    before = one.config.flow.rules.marks.low_bytes
    await one.dynamic.set(HIGH, "70000")
    assert (before, one.config.flow.rules.marks.low_bytes) == (1_000, 60_000)


async def test_in_profile_pulsar_an_unusable_number_is_shown_while_the_last_usable_applies(
    make: Callable[..., Dynamic],
) -> None:
    one = await make(floodgateProfile="pulsar")
    await one.dynamic.set(LOADS, "7")
    await one.dynamic.set(LOADS, "0")
    assert one.dynamic.runtime()[LOADS] == "0"
    assert one.config.max_concurrent_topic_loads == 7


async def test_a_dynamic_value_applies_beside_a_token_setting_prefix(
    make: Callable[..., Dynamic],
) -> None:
    one = await make(
        authenticationEnabled="true",
        authenticationProviders=f"{PACKAGE}Token",
        tokenSettingPrefix="my_",
        my_tokenSecretKey="file:///secret",
    )
    await one.dynamic.set(LOOKUPS, "7")
    assert one.config.max_concurrent_lookup_requests == 7
    assert one.config.authentication == one.started_with.authentication
    assert one.dynamic.runtime()["tokenSettingPrefix"] == "my_"


async def test_dynamic_values_apply_after_the_file_of_the_store_url_was_removed(
    make: Callable[..., Dynamic], tmp_path: Path
) -> None:
    source = tmp_path / "url"
    source.write_text("memory:local")
    one = await make(floodgateMetadataStoreUrl=f"file://{source}")
    source.unlink()
    await one.dynamic.set(LOOKUPS, "7")
    there = one.config.max_concurrent_lookup_requests
    one.store.kept[LOOKUPS] = "8"
    one.store.tell()
    await settle()
    followed = one.config.max_concurrent_lookup_requests
    await one.dynamic.clear()
    assert (there, followed, one.config) == (7, 8, one.started_with)


async def test_a_dynamic_change_keeps_the_disk_bound_computed_at_the_start(
    make: Callable[..., Dynamic], monkeypatch: pytest.MonkeyPatch
) -> None:
    def free(megabytes: int) -> None:
        found = SimpleNamespace(f_bavail=megabytes, f_frsize=1 << 20)
        monkeypatch.setattr(os, "statvfs", lambda _: found)

    free(3_000)
    one = await make()
    free(1_000)
    await one.dynamic.set(LOOKUPS, "7")
    assert one.dynamic.runtime()["floodgateMessageStoreMaxMB"] == "1500"
    assert one.config.message_store.max_bytes == 1_500 << 20


async def test_a_stored_key_that_is_unknown_or_not_dynamic_is_ignored(
    make: Callable[..., Dynamic],
) -> None:
    one = await make({"noSuchKey": "1", "maxMessageSize": "7"})
    assert one.config == one.started_with


async def test_a_change_by_another_broker_takes_effect(make: Callable[..., Dynamic]) -> None:
    one = await make()
    one.store.kept[LOOKUPS] = "7"
    one.store.tell()
    await settle()
    there = one.config.max_concurrent_lookup_requests
    del one.store.kept[LOOKUPS]
    one.store.tell()
    await settle()
    assert (there, one.config.max_concurrent_lookup_requests) == (7, 50_000)


async def test_a_failed_read_of_the_store_is_logged_and_the_next_change_applies(
    make, caplog
) -> None:
    one = await make({LOOKUPS: "7"})
    one.store.fails = True
    with caplog.at_level(logging.WARNING):
        one.store.tell()
        await settle()
    one.store.fails = False
    one.store.kept[LOOKUPS] = "8"
    one.store.tell()
    await settle()
    assert "cannot be read: the disk is full" in caplog.text
    assert one.config.max_concurrent_lookup_requests == 8


@pytest.mark.parametrize("work", ["set", "delete"])
async def test_a_change_that_cannot_be_stored_does_not_take_effect(make, work) -> None:
    one = await make({LOOKUPS: "7"})
    one.store.fails = True
    with pytest.raises(StoreError):
        await {
            "set": lambda: one.dynamic.set(LOOKUPS, "9"),
            "delete": lambda: one.dynamic.delete(LOOKUPS),
        }[work]()
    assert one.config.max_concurrent_lookup_requests == 7


async def test_after_simultaneous_changes_the_stored_value_is_in_effect(make) -> None:
    one = await make()
    await asyncio.gather(*[one.dynamic.set(LOOKUPS, str(n)) for n in range(1, 9)])
    assert one.store.kept == {LOOKUPS: str(one.config.max_concurrent_lookup_requests)}


async def test_a_deletion_that_conflicts_with_another_dynamic_value_is_refused(
    make: Callable[..., Dynamic],
) -> None:
    one = await make()
    await one.dynamic.set(HIGH, "200000")
    await one.dynamic.set(LOW, "100000")
    stuck = await refused(one.dynamic.delete(HIGH))
    assert one.config.flow.rules.marks.low_bytes == 100_000
    assert "the low mark must not be above the high mark" in stuck


async def test_a_dynamic_change_keeps_limits_set_in_code() -> None:
    # Limits below a megabyte, not expressible by a key
    started_with = BrokerConfig.from_properties({})
    small = replace(started_with.topic_list_limits, heap_max_bytes=1_000)
    started_with = replace(started_with, topic_list_limits=small)
    dynamic = DynamicConfiguration(started_with, MemoryStore(), lambda _: None)
    await dynamic.set(LOOKUPS, "7")
    assert dynamic.config.topic_list_limits.heap_max_bytes == 1_000
    assert dynamic.config.max_concurrent_lookup_requests == 7


async def test_secrets_are_masked_in_effective_and_dynamic_values(
    make: Callable[..., Dynamic],
) -> None:
    one = await make(
        {"brokerClientAuthenticationParameters": "token:abc"},
        metadataStoreUrl="postgresql://floodgate:hush@db/x?password=hush",
        tlsKeyStorePassword="hush",
        brokerClientTlsKeyStorePassword="",
    )
    shown = one.dynamic.runtime()
    assert shown["tlsKeyStorePassword"] == MASK
    assert shown["brokerClientTlsKeyStorePassword"] == ""
    assert shown["metadataStoreUrl"] == f"postgresql://floodgate:{MASK}@db/x?password={MASK}"
    assert await one.dynamic.values() == {"brokerClientAuthenticationParameters": MASK}
    assert "hush" not in repr(one.config.keys)


@pytest.mark.parametrize(
    ("profile", "pause", "policy"), [("pulsar", "false", "fifo"), ("floodgate", "true", "fair")]
)
async def test_the_effective_values_include_the_values_chosen_by_the_profile(
    make, profile, pause, policy
) -> None:
    shown = (await make(floodgateProfile=profile)).dynamic.runtime()
    assert shown["pulsarChannelPauseReceivingRequestsIfUnwritable"] == pause
    assert shown["floodgateAdmissionPolicy"] == policy
    assert shown["floodgateProfile"] == profile
    assert shown["maxMessageSize"] == "5242880"
