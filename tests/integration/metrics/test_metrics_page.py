"""The page of metrics says what broker and proxy show."""

from __future__ import annotations

import re

from tools.metrics_page import PAGE, made


async def test_the_page_of_metrics_is_what_a_scrape_shows() -> None:
    # When: tools/metrics_page.py writes the page again.
    found = await made()
    # Then
    assert found.splitlines() == PAGE.read_text(encoding="utf-8").splitlines()


def test_the_page_of_bounds_names_no_metric_that_is_not_there() -> None:
    # Given: a client's own metrics are on no server's page
    bounds = PAGE.with_name("bounds.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:floodgate|pulsar)_[a-z_]+)[`{]", bounds))
    # When
    shown = set(re.findall(r"^\| `(\w+)`", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    # Then
    assert {name for name in named - shown if not name.startswith("floodgate_client_")} == set()
