"""A figure has one name for all servers."""

import pytest

from loadgen.places.sampling import kept_samples
from loadgen.results.vocabulary import FIGURES, figure_of


@pytest.mark.parametrize(
    ("metric", "figure"),
    [
        ("pulsar_broker_topic_list_heap_memory_used_bytes", "heap.used"),
        ("pulsar_proxy_topic_list_heap_memory_used_bytes", "heap.used"),
        ('pulsar_proxy_topic_list_direct_queue_size{cluster="c"}', "direct.waiting"),
        ('pulsar_active_connections{broker="h:1",metric="broker_connection"}', "connections"),
        ('floodgate_topic_list_memory_high_water_bytes{type="heap"}', "heap.high"),
        ('pulsar_broker_topic_list_heap_wait_time_ms{quantile="0.5"}', None),
        ("floodgate_loop_lag", None),
    ],
)
def test_a_metric_name_is_mapped_to_its_figure(metric: str, figure: str | None) -> None:
    assert figure_of(metric) == figure


def test_every_metric_with_a_figure_is_kept_from_a_metrics_page() -> None:
    page = "".join(f"{metric} 1\n" for metric in FIGURES)
    assert dict(kept_samples(page)) == dict.fromkeys(FIGURES, 1.0)
