"""Scrapes of broker and proxy about topic-list memory, against the recording."""

import logging
import math
import re
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as text_string_to_openmetrics_families,
)
from prometheus_client.parser import text_string_to_metric_families

from limiter.memory.dual_limiter import LimitType
from proto.version import VERSION
from tests.support.peers.raw_peer import lookup_command
from tests.support.processes.cluster import Cluster, cluster, topic_names, until
from tests.support.processes.samples import prometheus_type, read_samples

GOLDEN = Path(__file__).parents[2] / "golden" / "metrics.txt"
NAMESPACE = "public/default"
TOPICS = {NAMESPACE: topic_names(NAMESPACE, 3)}
ENDED = ("answers_total", "redirects_total", "failures_total", "count")
UNLIMITED = {
    "maxTopicListInFlightHeapMemSizeMB": "0",
    "maxTopicListInFlightDirectMemSizeMB": "0",
}


async def scrape(parts: Cluster, role: str, accept: str = "text/plain") -> str:
    url, headers = f"{parts.part(role).web_service_url}/metrics/", {"Accept": accept}
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers) as response:
        assert response.status == 200
        assert response.content_type == accept.partition(";")[0]
        return await response.text()


def values_of(text: str, role: str) -> dict[str, float]:
    """Read with Prometheus' own parser; a quantile is part of the name."""
    return {
        sample.name.removeprefix(f"pulsar_{role}_topic_list_")
        + sample.labels.get("quantile", ""): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith(f"pulsar_{role}_topic_list_")
    }


def topic_list_samples(text: str, role: str) -> set[tuple[str, str, tuple[str, ...]]]:
    """Each sample's name (a broker's), family type and labels."""
    return {
        (
            sample.name.replace(f"pulsar_{role}_", "pulsar_broker_"),
            sample.type,
            tuple(sorted(sample.labels)),
        )
        for sample in read_samples(text)
        if sample.name.startswith(f"pulsar_{role}_topic_list_")
    }


def recorded() -> set[tuple[str, str, tuple[str, ...]]]:
    rows = [line.split(" | ") for line in GOLDEN.read_text(encoding="utf-8").splitlines()]
    return {
        (name, prometheus_type(name, kind), tuple(labels.split(", ")))
        for name, kind, labels in rows
        if name.startswith("pulsar_broker_topic_list_")
    }


@pytest.mark.parametrize("role", ["broker", "proxy"])
@pytest.mark.parametrize("profile", ["floodgate", "pulsar"])
@pytest.mark.parametrize("limits", [{}, UNLIMITED], ids=["limited", "unlimited"])
async def test_the_26_recorded_samples_are_shown_before_and_after_the_first_listing(
    role: str, profile: str, limits: dict[str, str]
) -> None:
    async with cluster(TOPICS, profile, both=limits) as parts:
        before = await scrape(parts, role)
        await parts.client(role).topics_of_namespace(NAMESPACE)
        after = await scrape(parts, role)
        for text in (before, after):
            assert topic_list_samples(text, role) == recorded()
            assert len(values_of(text, role)) == 26


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_every_sample_has_help_and_type_under_its_family_name(role) -> None:
    async with cluster(TOPICS) as parts:
        text = await scrape(parts, role)
        for sample in read_samples(text):
            parts_of = {"summary": "_(count|sum)", "histogram": "_(count|sum|bucket)"}
            family = re.sub(f"{parts_of.get(sample.type, 'no part')}$", "", sample.name)
            assert f"# HELP {family} " in text, sample
            assert f"# TYPE {family} {sample.type}\n" in text, sample


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_a_scrape_as_openmetrics_has_the_same_samples(role: str) -> None:
    async with cluster(TOPICS) as parts:
        text = await scrape(parts, role)
        asked = await scrape(parts, role, accept="application/openmetrics-text; version=1.0.0")
        # Its parser is strict
        families = list(text_string_to_openmetrics_families(asked))
        assert {one.name for family in families for one in family.samples} == {
            one.name for one in read_samples(text)
        }
        kinds = {family.name: family.type for family in families}
        assert kinds[f"pulsar_{role}_topic_list_heap_timeout"] == "counter"


async def test_binary_and_http_lookups_are_counted_if_their_namespace_exists() -> None:
    """Recorded: an unknown listener is a failure, a missing namespace is not counted."""
    async with cluster(TOPICS) as parts, aiohttp.ClientSession() as session:
        peer = await parts.peer("broker")
        for topic, listener in (("default/a", ""), ("default/a", "other"), ("none/a", "")):
            command = lookup_command(1, f"persistent://public/{topic}")
            command.lookupTopic.advertised_listener_name = listener
            await peer.send(command)
            await peer.command()
            url = f"{parts.broker.web_service_url}/lookup/v2/topic/persistent/public/{topic}"
            async with session.get(url, params={"listenerName": listener}):
                pass
        text = await scrape(parts, "broker")
        values = {one.name: one.value for one in read_samples(text)}
        counts = [values[f"pulsar_broker_lookup_{one}"] for one in ENDED]
        assert counts == [2, 0, 2, 4]


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_wait_time_quantiles_are_nan_before_the_first_acquisition(role: str) -> None:
    async with cluster(TOPICS) as parts:
        before = values_of(await scrape(parts, role), role)
        await parts.client(role).topics_of_namespace(NAMESPACE)
        after = values_of(await scrape(parts, role), role)
        for kind in ("heap", "direct"):
            waits = f"{kind}_wait_time_ms"
            assert all(math.isnan(before[f"{waits}{q}"]) for q in ("0.5", "0.95", "0.99", "1.0"))
            assert (before[f"{waits}_count"], after[f"{waits}0.5"]) == (0, 0)
            assert after[f"{waits}_count"] >= 1
            assert before[f"{kind}_timeout_total"] == after[f"{kind}_timeout_total"] == 0


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_without_a_limit_neither_memory_use_nor_waits_are_counted(role: str) -> None:
    async with cluster(TOPICS, both=UNLIMITED) as parts:
        await parts.client(role).topics_of_namespace(NAMESPACE)
        values = values_of(await scrape(parts, role), role)
        for kind in ("heap", "direct"):
            assert values[f"{kind}_memory_limit_bytes"] == 0
            assert values[f"{kind}_memory_used_bytes"] == 0
            assert values[f"{kind}_wait_time_ms_count"] == 0
            assert math.isnan(values[f"{kind}_wait_time_ms1.0"])


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_held_permits_and_waiters_show_in_the_next_scrape(role: str) -> None:
    async with cluster(TOPICS, both={"maxTopicListInFlightHeapMemSizeMB": "1"}) as parts:
        limiter = parts.part(role).limiter
        permit = await limiter.acquire(LimitType.HEAP_MEMORY, 1024 * 1024)
        waiting = limiter.request(LimitType.HEAP_MEMORY, 5)
        values = values_of(await scrape(parts, role), role)
        limiter.release(permit)
        assert values["heap_memory_used_bytes"] == values["heap_memory_limit_bytes"] == 1024 * 1024
        assert values["heap_queue_size"] == 1
        assert values["direct_memory_used_bytes"] == values["direct_queue_size"] == 0
        await until(lambda: waiting.done)
        limiter.abandon(LimitType.HEAP_MEMORY, waiting)


@pytest.mark.parametrize("role", ["broker", "proxy"])
async def test_server_info_and_the_start_log_show_version_and_settings(role: str, caplog) -> None:
    caplog.set_level(logging.INFO)
    async with cluster(TOPICS, "pulsar", both={"maxTopicListInFlightHeapMemSizeMB": "7"}) as parts:
        samples = read_samples(await scrape(parts, role))
    (info,) = [sample for sample in samples if sample.name == "floodgate_server_info"]
    assert info.labels["version"] == VERSION
    assert info.labels["floodgate_profile"] == "pulsar"
    assert info.labels["floodgate_admission_policy"] == "fifo"
    assert info.labels["max_topic_list_in_flight_heap_mem_size_mb"] == "7"
    (first,) = [line for line in caplog.messages if line.startswith(f"Floodgate {role} ")]
    assert first.startswith(f"Floodgate {role} {VERSION} with floodgateProfile=pulsar, ")
    assert "maxTopicListInFlightHeapMemSizeMB=7, " in first


async def test_server_info_shows_a_limit_changed_at_run_time() -> None:
    async with cluster(TOPICS, "floodgate") as parts:
        await parts.broker.dynamic.set("maxTopicListInFlightHeapMemSizeMB", "9")
        samples = read_samples(await scrape(parts, "broker"))
    (info,) = [sample for sample in samples if sample.name == "floodgate_server_info"]
    assert info.labels["max_topic_list_in_flight_heap_mem_size_mb"] == "9"
