"""The page of metrics lists broker's and proxy's metrics."""

import re
from pathlib import Path

from tools.metrics_page import PAGE, made

GOLDEN = Path(__file__).parents[2] / "golden" / "metrics.txt"
PART = re.compile("_(created|count|sum|bucket)$")
"""Suffixes of samples' names that their families' names lack."""


def families(page: str) -> set[str]:
    """Return the families that the page's lists begin with."""
    lines = re.findall(r"^- (`.*?`): ", page, re.MULTILINE)
    return set(re.findall(r"`(\w+)[`{]", " ".join(lines)))


async def test_the_page_of_metrics_equals_the_page_made_from_a_scrape() -> None:
    # Tools/metrics_page.py writes the page again.
    found = await made()
    assert found.splitlines() == PAGE.read_text(encoding="utf-8").splitlines()


def test_each_metric_of_a_real_broker_is_documented_as_present_or_absent() -> None:
    page = PAGE.read_text(encoding="utf-8")
    shown = families(page)
    absent = tuple(re.findall(r"`(\w+)\*`", page))
    lines = GOLDEN.read_text(encoding="utf-8").splitlines()
    recorded = [line.partition(" | ")[0] for line in lines if not line.startswith("#")]
    missing = {
        name
        for name in recorded
        if not {name, PART.sub("", name), PART.sub("_total", name)} & shown
    }
    assert {name for name in missing if not name.startswith(absent)} == set()
    # No metric is called absent that exists, or that a real broker lacks.
    assert [name for name in shown if name.startswith(absent)] == []
    assert [one for one in absent if not any(name.startswith(one) for name in missing)] == []


def test_the_page_of_bounds_names_only_existing_metrics() -> None:
    # A client's own metrics are on no server's page
    bounds = PAGE.with_name("bounds.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:floodgate|pulsar)_[a-z_]+)[`{]", bounds))
    shown = families(PAGE.read_text(encoding="utf-8"))
    assert {name for name in named - shown if not name.startswith("floodgate_client_")} == set()
