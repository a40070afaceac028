"""The page of metrics says what broker and proxy show."""

from __future__ import annotations

from tools.metrics_page import PAGE, made


async def test_the_page_of_metrics_is_what_a_scrape_shows() -> None:
    # When: tools/metrics_page.py writes the page again.
    found = await made()
    # Then
    assert found.splitlines() == PAGE.read_text(encoding="utf-8").splitlines()
