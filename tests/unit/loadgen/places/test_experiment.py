"""A run's provenance is requested from each server; missing answers stay unknown."""

import asyncio

from loadgen.places.experiment import facts_of_page, read_server_facts
from loadgen.places.sampling import kept_samples
from proto.version import FLOODGATE_VERSION, VERSION
from tests.support.peers.stand_in_admin import Given, given, stand_in_admin

INFO = (
    f'floodgate_server_info{{cluster="a",version="{VERSION}",floodgate_profile="pulsar",'
    'max_topic_list_in_flight_heap_mem_size_mb="7"} 1.0\n'
)
PULSAR = 'pulsar_version_info{cluster="a",version="4.2.4",commit="53"} 1.0\n'
RUNTIME = {
    "maxTopicListInFlightHeapMemSizeMB": "7",
    "brokerClientAuthenticationParameters": "token:hidden",
}
OF_A_BROKER = {
    "GET /metrics/": Given((PULSAR.encode(),)),
    "GET /admin/v2/brokers/version": Given((b"4.2.4",)),
    "GET /admin/v2/brokers/configuration/runtime": given(RUNTIME),
}
UNKNOWN = {"version": None, "settings": {}}


def test_a_floodgate_metrics_page_yields_version_and_settings() -> None:
    facts = facts_of_page(f"# TYPE x gauge\nx 1\n{INFO}")
    assert facts["version"] == FLOODGATE_VERSION
    assert facts["settings"] == {
        "floodgateProfile": "pulsar",
        "maxTopicListInFlightHeapMemSizeMB": "7",
    }


def test_a_pulsar_metrics_page_yields_only_the_version() -> None:
    assert facts_of_page(PULSAR) == {"version": "4.2.4", "settings": {}}
    assert facts_of_page("x 1\n") == UNKNOWN


async def test_broker_settings_are_read_by_rest_without_secrets() -> None:
    async with stand_in_admin(**OF_A_BROKER) as broker:
        facts = await asyncio.to_thread(read_server_facts, "broker", broker.url)
    assert facts == {
        "version": "4.2.4",
        "settings": {"maxTopicListInFlightHeapMemSizeMB": "7"},
    }


async def test_a_proxy_is_queried_by_its_metrics_and_never_by_rest() -> None:
    answers = {**OF_A_BROKER, "GET /metrics/": Given((INFO.encode(),))}
    async with stand_in_admin(**answers) as proxy:
        facts = await asyncio.to_thread(read_server_facts, "proxy", proxy.url)
    assert facts["version"] == FLOODGATE_VERSION
    assert proxy.lines == ["GET /metrics/"]


async def test_a_server_without_answers_has_an_unknown_version() -> None:
    async with stand_in_admin() as broker:
        assert await asyncio.to_thread(read_server_facts, "broker", broker.url) == UNKNOWN
    assert read_server_facts("broker", broker.url) == UNKNOWN


def test_the_server_info_metric_is_not_kept_as_a_sample() -> None:
    assert list(kept_samples(f"{INFO}floodgate_x 2.0\n")) == [("floodgate_x", 2.0)]
