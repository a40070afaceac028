"""Metric families as a real broker writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from server.connection_metrics import counter, gauge
from server.exposition import exposition

if TYPE_CHECKING:
    from collections.abc import Iterator


class Fixed(Collector):
    """A collector of given families."""

    def __init__(self, *families: Metric) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families


def written(*families: Metric) -> list[str]:
    registry = CollectorRegistry()
    registry.register(Fixed(*families))
    return exposition(registry).decode().splitlines()


def test_all_samples_of_a_family_stand_under_its_one_type_line() -> None:
    # Given
    family = Metric("x_timeout", "", "counter")
    family.add_sample("x_timeout_total", {"cluster": "c"}, 3)
    family.add_sample("x_timeout_created", {"cluster": "c"}, 1.5)
    # Then
    assert written(family) == [
        "# TYPE x_timeout counter",
        'x_timeout_total{cluster="c"} 3.0',
        'x_timeout_created{cluster="c"} 1.5',
    ]


def test_labels_keep_their_order_and_are_escaped() -> None:
    assert written(gauge("g", 'two\nlines \\ "', {"z": 'a"b', "a": "c\\d\ne"}, 1))[:3] == [
        '# HELP g two\\nlines \\\\ "',
        "# TYPE g gauge",
        r'g{z="a\"b",a="c\\d\ne"} 1.0',
    ]


def test_numbers_are_written_as_floats() -> None:
    # Given
    family = Metric("s", "", "summary")
    for value in (float("nan"), float("inf"), float("-inf"), 104857600, 0):
        family.add_sample("s", {}, value)
    # Then
    assert written(family)[1:] == ["s NaN", "s +Inf", "s -Inf", "s 104857600.0", "s 0.0"]


def test_prometheus_own_parser_reads_it() -> None:
    # When
    text = "\n".join(written(counter("c", "help", {"cluster": "a,b"}, 2))) + "\n"
    # Then
    families = text_string_to_metric_families(text)
    (sample,) = (sample for family in families for sample in family.samples)
    assert (sample.name, sample.labels, sample.value) == ("c_total", {"cluster": "a,b"}, 2.0)
