"""Metric families in a real broker's format."""

from collections.abc import Callable, Iterator

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from limiter.metrics.instruments import counter, gauge
from limiter.metrics.prometheus import family
from server.metrics.exposition import wants_openmetrics
from tests.support.processes.samples import exposition, openmetrics


class Fixed(Collector):
    """A collector of given families."""

    def __init__(self, *families: Metric) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        yield from self._families


TIMEOUTS = Metric("x_timeout", 'Say "when"', "counter")
TIMEOUTS.add_sample("x_timeout_total", {"cluster": "c"}, 3)
TIMEOUTS.add_sample("x_timeout_created", {"cluster": "c"}, 1.5)


def written(
    *families: Metric, write: Callable[[CollectorRegistry], bytes] = exposition
) -> list[str]:
    registry = CollectorRegistry()
    registry.register(Fixed(*families))
    return write(registry).decode().splitlines()


def test_help_and_type_of_a_counter_use_the_name_of_its_samples() -> None:
    assert written(TIMEOUTS) == [
        '# HELP x_timeout_total Say "when"',
        "# TYPE x_timeout_total counter",
        'x_timeout_total{cluster="c"} 3.0',
        "# HELP x_timeout_created Since when x_timeout_total counts, in seconds since 1970",
        "# TYPE x_timeout_created gauge",
        'x_timeout_created{cluster="c"} 1.5',
    ]


def test_in_openmetrics_a_family_has_a_single_type_line_for_all_samples() -> None:
    assert written(TIMEOUTS, write=openmetrics) == [
        r"# HELP x_timeout Say \"when\"",
        "# TYPE x_timeout counter",
        'x_timeout_total{cluster="c"} 3.0',
        'x_timeout_created{cluster="c"} 1.5',
        "# EOF",
    ]


@pytest.mark.parametrize(
    ("accept", "asked"),
    [
        ("application/openmetrics-text;version=1.0.0;q=0.5, text/plain;version=0.0.4;q=0.2", True),
        ("text/plain, Application/OpenMetrics-Text", True),
        ("application/openmetrics-text;q=0.01", True),
        ("application/openmetrics-text;version=1.0.0; q=0.0, text/plain", False),
        ("text/plain;version=0.0.4", False),
        ("*/*", False),
        ("", False),
    ],
)
def test_openmetrics_is_sent_only_if_accepted(accept: str, asked: bool) -> None:
    assert wants_openmetrics(accept) is asked


def test_labels_keep_their_order_and_are_escaped() -> None:
    row = gauge("g", 'two\nlines \\ "', int)
    assert written(family(row, 1, {"z": 'a"b', "a": "c\\d\ne"}))[:3] == [
        '# HELP g two\\nlines \\\\ "',
        "# TYPE g gauge",
        r'g{z="a\"b",a="c\\d\ne"} 1.0',
    ]


def test_numbers_are_written_as_floats() -> None:
    family = Metric("s", "", "summary")
    for value in (float("nan"), float("inf"), float("-inf"), 104857600, 0):
        family.add_sample("s", {}, value)
    assert written(family)[1:] == ["s NaN", "s +Inf", "s -Inf", "s 104857600.0", "s 0.0"]


def test_the_text_is_readable_by_the_parser_of_prometheus() -> None:
    row = counter("c", "help", int)
    text = "\n".join(written(family(row, 2, {"cluster": "a,b"}))) + "\n"
    families = text_string_to_metric_families(text)
    (sample,) = (sample for family in families for sample in family.samples)
    assert (sample.name, sample.labels, sample.value) == ("c_total", {"cluster": "a,b"}, 2.0)
