"""Charts as SVG: well-formed, finite, escaped, and readable without colour."""

import math
import re
from xml.etree import ElementTree as ET

import pytest

from loadgen.report.charts import (
    MOST_POINTS,
    Bar,
    Bars,
    Chart,
    Series,
    peak_words,
    thin,
)
from loadgen.report.drawing import picture, render
from loadgen.results.units import Unit

HOSTILE = '<script>alert("x")</script>&\x00\x1b'
LINE = [(0.0, 1.0), (1.0, 3.0), (2.0, 2.0)]
CHARTS = [
    Chart("a line", [Series("x", LINE)]),
    Chart("nothing", [Series("x", [])]),
    Chart("one point", [Series("x", [(1.0, 1.0)])], log=True),
    Chart("all zero", [Series("x", [(0.0, 0.0), (0.0, 0.0)], "area")], Unit.BYTES),
    Chart("holes", [Series("x", [(0.0, math.nan), (1.0, math.inf), (2.0, -math.inf)])]),
    Chart("log of zero", [Series("x", [(0.0, 0.0), (1.0, 5.0)], "dots")], Unit.SECONDS, log=True),
    Chart("negative", [Series("x", [(-1.0, -5.0), (1.0, 5.0)])], Unit.BYTES),
    Chart("percentiles", [Series("x", [(0.0, 0.1), (3.0, 2.0)])], Unit.SECONDS, x="percentile"),
    Chart("band", [Series("x", LINE, between=[(0, 0.5, 1.5), (1, 2, math.inf), (2, 1, 3)])]),
    Chart("limit", [Series("x", LINE)], limits=[(2.5, "limit"), (1e9, "far")]),
    Bars("bars", [Bar("a", [(3, "good"), (4, "bad")]), Bar("b", [])]),
    Bars("no bars", []),
]


def places_of(text: str) -> list[tuple[str, str]]:
    return re.findall(r"<text ([^>]*)>(kill broker|ready|restart proxy)<", text)


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.title)
def test_every_chart_is_well_formed_svg_with_finite_numbers(chart: Chart | Bars) -> None:
    text = render(chart)
    ET.fromstring(text)
    assert not re.search(r"\b(nan|inf)\b", text, re.IGNORECASE)


def test_texts_of_a_run_are_escaped_everywhere_in_a_picture() -> None:
    chart = Chart(
        HOSTILE,
        [Series(HOSTILE, LINE, words=HOSTILE)],
        limits=[(2.0, HOSTILE)],
        bands=[(0.0, 2.0, HOSTILE)],
        marks=[(1.0, HOSTILE)],
        x_title=HOSTILE,
        y_title=HOSTILE,
    )
    text = picture([chart, Bars(HOSTILE, [Bar(HOSTILE, [(1, "good")], HOSTILE)])])
    ET.fromstring(text)
    assert "<script" not in text


def test_a_thinned_line_keeps_a_peak_of_a_single_sample() -> None:
    points = [(float(n), 1.0 if n == 7_777 else 0.0) for n in range(10_000)]
    kept = thin(points, MOST_POINTS)
    assert (7_777.0, 1.0) in kept
    assert len(kept) <= MOST_POINTS + 2


def test_a_line_has_gaps_at_undefined_values() -> None:
    points = [(0.0, 1.0), (1.0, 2.0), (2.0, math.nan), (3.0, 4.0), (4.0, math.inf), (5.0, 1.0)]
    drawn = render(Chart("t", [Series("a", points)]))
    assert drawn.count("<polyline") == 3
    assert drawn.count('class="dots"') == 1  # The two isolated points.
    assert "nan" not in drawn


def test_a_limit_far_above_all_values_is_not_drawn() -> None:
    with_limit = render(Chart("x", [Series("x", LINE)], limits=[(1e9, "limit far")]))
    assert "limit far" not in with_limit
    assert "limit near" in render(Chart("x", [Series("x", LINE)], limits=[(4.0, "limit near")]))


def test_a_shock_near_the_right_edge_has_its_label_on_the_left() -> None:
    marks = [(0.1, "kill broker"), (0.2, "ready"), (2.0, "restart proxy")]
    text = render(Chart("x", [Series("x", LINE)], marks=marks))
    ends = {words: 'text-anchor="end"' in at for at, words in places_of(text)}
    assert ends == {"kill broker": False, "ready": False, "restart proxy": True}
    heights = {words: float(re.findall(r' y="([\d.]+)"', at)[0]) for at, words in places_of(text)}
    assert heights["kill broker"] < heights["ready"]


def test_long_labels_are_wrapped_into_several_lines() -> None:
    words = "each with its own retries and half of them refused, " * 3 + "the end"
    short, bar = Bar("a", [(1, "good")]), Bar(words, [(1, "good")])
    line = Series(words, LINE)
    for one, two in (
        (Bars("x", [short]), Bars(words, [bar])),
        (Chart("x", []), Chart(words, [line])),
    ):
        lines, fewer = (re.findall(r"<text[^>]*>([^<]*)<", render(each)) for each in (two, one))
        assert sum(each.endswith("the end") for each in lines) == 2
        assert max(map(len, lines)) <= 85
        assert len(lines) > len(fewer) + 2


def test_a_label_at_the_end_of_an_axis_stays_within_the_chart() -> None:
    text = render(Chart("x", [Series("x", [(0.0, 1.0), (1.0, 2.0)])], x="percentile", log=True))
    assert re.search(r'<text x="560"[^>]* text-anchor="end">90 %<', text)


def test_labels_of_a_narrow_axis_do_not_overlap() -> None:
    line = Series("x", [(0.0, 1.0), (5.0, 2.0)])
    shares = [
        re.findall(r">([\d.]+ %)<", render(Chart("x", [line], x="percentile", width=width)))
        for width in (560, 240)
    ]
    assert shares == [
        ["0 %", "50 %", "90 %", "99 %", "99.9 %", "99.99 %"],
        ["0 %", "90 %", "99 %", "99.9 %"],
    ]


def test_refusals_are_drawn_as_rings_and_lines_may_be_dashed() -> None:
    dots = render(Chart("x", [Series("a", LINE, "dots"), Series("b", LINE, "rings", "bad")]))
    assert dots.count('class="hole"') == 2  # in the legend, and in the plot
    assert "stroke-dasharray" in render(Chart("x", [Series("b", LINE, dash=1)]))


def test_a_picture_supports_light_and_dark_mode_without_css_variables() -> None:
    text = picture([CHARTS[0]] * 3, columns=2)  # type: ignore[list-item]
    assert "var(" not in text
    assert "light-dark(" not in text
    assert text.count("@media (prefers-color-scheme: dark)") == 1
    assert text.count('class="title"') == 3


def test_a_peak_is_described_in_words_with_its_unit() -> None:
    assert peak_words([(0, 2.0**20), (1, math.nan)], Unit.BYTES) == "at most 1.0 MB"
    assert peak_words([], Unit.BYTES) == "nothing"
