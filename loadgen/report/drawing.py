"""Drawing of charts as SVG, for the HTML page of a run and as files to use in documents."""

from __future__ import annotations

import re
import textwrap
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

from loadgen.report.charts import WIDTH, Axis, Bars, Chart, Point, Series, drawable, stretches

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LETTER = 6.6
"""Mean width of a letter of 12 pixels."""
_DIGIT = 8.0
"""Largest width of a digit or a sign of 12 pixels: ticks are too short for a mean."""
_BOLD = 1.2
"""Width of a title's letter, relative to other letters."""
_TITLE, _LINE, _FOOT, _RIGHT = 22, 17, 24, 14
_MOST_LINES = 4
_DASHES = ("", "7 3", "2 3", "8 3 2 3")
_BAR, _BAR_WORDS = 14, 34
_COLOUR = re.compile(r"--(\w+): light-dark\((#\w+), (#\w+)\);")
_USE = re.compile(r"var\(--(\w+)\)")


def render(drawn: Chart | Bars) -> str:
    """Return a chart as an ``svg`` element, whose colours the style sheet of the page defines."""
    height, body = _drawn(drawn)
    return _svg(drawn.width, height, drawn.title, body)


def picture(drawn: Sequence[Chart | Bars], columns: int = 2, gap: int = 28) -> str:
    """Return charts as one SVG file with its own style sheet, ``columns`` charts side by side."""
    columns, parts, y = min(columns, len(drawn)), [], 8
    for begin in range(0, len(drawn), columns):
        row = [_drawn(each) for each in drawn[begin : begin + columns]]
        for column, (_, body) in enumerate(row):
            place = f'transform="translate({8 + column * (WIDTH + gap)} {y})"'
            parts.append(f"<g {place}>{body}</g>")
        y += max(height for height, _ in row) + gap
    width, height = 16 + columns * (WIDTH + gap) - gap, 8 + y - gap
    paper = f'<style>{_style()}</style><rect class="paper" width="{width}" height="{height}"/>'
    return f"{_svg(width, height, '; '.join(e.title for e in drawn), paper + ''.join(parts))}\n"


def sheet(name: str) -> str:
    """Return the text of a style sheet in this folder, given its file name."""
    return (files(__package__) / name).read_text(encoding="utf-8")


def _style() -> str:
    """Return the style sheet of an SVG file, with colours for light and dark pages.

    It lacks the rules that only browsers understand.
    """
    rules = sheet("chart.css")
    found = {name: (light, dark) for name, light, dark in _COLOUR.findall(sheet("report.css"))}
    light, dark = (_USE.sub(lambda each: found[each[1]][which], rules) for which in (0, 1))  # noqa: B023
    coloured = "\n".join(line for line in dark.splitlines() if "#" in line)
    return f"{light}@media (prefers-color-scheme: dark) {{\n{coloured}\n}}\n"


def _drawn(drawn: Chart | Bars) -> tuple[int, str]:
    """Return a chart's height in pixels, and its SVG elements."""
    return _chart(drawn) if isinstance(drawn, Chart) else _bars(drawn)


def _svg(width: int, height: int, title: str, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{_safe(title)}">{body}</svg>'
    )


# -- charts -----------------------------------------------------------------------------------


def _chart(chart: Chart) -> tuple[int, str]:
    series = [drawable(each, log=chart.log) for each in chart.series]
    chart = replace(chart, series=series, marks=sorted(chart.marks))
    x, y = chart.axes
    width = chart.width
    title, under = _paragraph(width, 14, chart.title, "title")
    legend, top = _legend(width, [each for each in chart.series if each.name], under + _TITLE - 14)
    legend += _text(0, top + 14, chart.y_title, "soft")
    top += 20 if chart.y_title else 0
    rows = _mark_rows(chart, x)
    top += 8 + 14 * (max(rows, default=-1) + 1)
    left = 12 + _LETTER * max(len(label) for _, label in y.ticks)
    foot = _FOOT + (_LINE if chart.x_title else 0)
    height = max(chart.height, round(top) + 110 + foot)
    plot = _Plot(x, y, left, top, width - _RIGHT - left, height - foot - top)
    parts = [
        title,
        legend,
        *(_band(plot, *each) for each in chart.bands),
        *_grid(plot),
        *(_series(plot, each) for each in chart.series),
        *(_mark(plot, *each, row) for each, row in zip(chart.marks, rows, strict=True)),
        *(_limit(plot, *each) for each in chart.limits if y.low <= each[0] <= y.high),
        _text(width, height - 5, chart.x_title, "soft", "end"),
    ]
    if not any(each.points for each in chart.series):
        middle = left + plot.width / 2, top + plot.height / 2
        parts.append(_text(*middle, "nothing", "soft", "middle"))
    return height, "".join(parts)


class _Plot(NamedTuple):
    """The rectangle of a chart in which its series are drawn, with the two axes."""

    x_axis: Axis
    y_axis: Axis
    left: float
    top: float
    width: float
    height: float

    @property
    def edge(self) -> float:
        """The horizontal position of the whole picture's right edge."""
        return self.left + self.width + _RIGHT

    def x(self, value: float) -> float:
        return self.left + self.x_axis.share(value) * self.width

    def y(self, value: float) -> float:
        return self.top + (1 - self.y_axis.share(value)) * self.height

    def place(self, point: Point) -> Point:
        return self.x(point[0]), self.y(point[1])

    def path(self, points: Iterable[Point]) -> str:
        return " ".join(",".join(map(_n, self.place(point))) for point in points)


def _legend(edge: int, series: Sequence[Series], top: float) -> tuple[str, float]:
    """Return a chart's legend as SVG, and the vertical position at which the legend ends."""
    parts, x, y = [], 0.0, top + 12.0
    for each in series:
        words = f"{each.name}: {each.words}" if each.words else each.name
        width = 24 + _LETTER * len(words) + 14
        if x and x + width > edge:
            x, y = 0.0, y + _LINE
        parts.append(f'<g class="{each.colour}">{_swatch(each, x, y - 4)}</g>')
        text, y = _paragraph(edge, y, words, x=x + 24)
        parts.append(text)
        x += width
    return "".join(parts), (y + 4 if series else top)


def _swatch(series: Series, x: float, y: float) -> str:
    if series.look in ("dots", "rings"):
        return _dots([(x + 9, y)], series.look)
    if series.look == "area":
        return f'<rect class="fill" x="{_n(x)}" y="{_n(y - 5)}" width="18" height="10"/>'
    return f'<path class="line"{_dash(series)} d="M{_n(x)} {_n(y)}h18"/>'


def _grid(plot: _Plot) -> Iterable[str]:
    bottom = plot.top + plot.height
    for value, label in plot.y_axis.ticks:
        y = _n(plot.y(value))
        yield f'<path class="grid" d="M{_n(plot.left)} {y}h{_n(plot.width)}"/>'
        yield _text(plot.left - 6, plot.y(value) + 4, label, "soft", "end")
    free = 0.0
    for value, label in plot.x_axis.ticks:
        x, half = plot.x(value), _DIGIT * len(label) / 2
        yield f'<path class="grid" d="M{_n(x)} {_n(bottom)}v4"/>'
        over = x + half > plot.edge
        begins, ends = (plot.edge - 2 * half, plot.edge) if over else (x - half, x + half)
        if begins >= free:  # Of overlapping labels the first is drawn.
            free = ends
            yield _text(
                ends if over else x, bottom + 17, label, "soft", "end" if over else "middle"
            )


def _series(plot: _Plot, series: Series) -> str:
    if not series.points:
        return ""
    if series.look in ("dots", "rings"):
        dots = _dots(map(plot.place, series.points), series.look)
        return f'<g class="{series.colour}">{dots}</g>'
    points = list(series.points)
    if series.look != "line":  # a value holds until the next
        ends = [x for x, _ in points[1:]] + [points[-1][0]]
        held = zip(points, ends, strict=True)
        points = [corner for (x, y), end in held for corner in ((x, y), (end, y))]
    body = ""
    if series.look == "area":
        floor = plot.y_axis.low
        around = [(points[0][0], floor), *points, (points[-1][0], floor)]
        body = f'<polygon class="fill" points="{plot.path(around)}"/>'
    else:
        if series.between:
            around = [(x, low) for x, low, _ in series.between]
            around += [(x, high) for x, _, high in reversed(series.between)]
            body = f'<polygon class="fill faint" points="{plot.path(around)}"/>'
        parts = stretches(points)
        for part in parts:
            body += f'<polyline class="line"{_dash(series)} points="{plot.path(part)}"/>'
        # In a band the points are the measured values; an isolated point has no line.
        dotted = [p for part in parts if series.between or len(part) == 1 for p in part]
        body += _dots(map(plot.place, dotted), "dots") if dotted else ""
    return f'<g class="{series.colour}">{body}</g>'


def _dash(series: Series) -> str:
    dash = _DASHES[series.dash % len(_DASHES)]
    return f' stroke-dasharray="{dash}"' if dash else ""


def _dots(points: Iterable[Point], look: str) -> str:
    """Draw a series' dots or rings as one path: thousands of circles would make a large page."""
    path = "".join(f"M{_n(x)} {_n(y)}h.1" for x, y in points)
    hole = f'<path class="hole" d="{path}"/>' if look == "rings" else ""
    return f'<path class="dots" d="{path}"/>{hole}'


def _band(plot: _Plot, low: float, high: float, label: str) -> str:
    left, width = plot.x(low), plot.x(high) - plot.x(low)
    if width < 0.5:
        return ""
    fits = _LETTER * len(label) + 8 < width
    return (
        f'<rect class="shade" x="{_n(left)}" y="{_n(plot.top)}" width="{_n(width)}" '
        f'height="{_n(plot.height)}"><title>{_safe(label)}</title></rect>'
        f"{_text(left + 4, plot.top + 12, label if fits else '', 'soft')}"
    )


def _limit(plot: _Plot, value: float, label: str) -> str:
    y = plot.y(value)
    return f'<path class="limit" d="M{_n(plot.left)} {_n(y)}h{_n(plot.width)}"/>' + _text(
        plot.left + plot.width - 2, y - 4 if y > plot.top + 14 else y + 13, label, "", "end"
    )


def _mark_rows(chart: Chart, x: Axis) -> list[int]:
    """Return, for each event, the row above the plot in which the event's words are written.

    Words of earlier events are in higher rows, so that no line crosses words.
    """
    begins: list[float] = []
    rows = []
    for at, label in sorted(chart.marks, reverse=True):
        left, width = x.share(at) * chart.width, _LETTER * len(label) + 10
        left -= width if left + width > chart.width else 0
        row = next((n for n, begin in enumerate(begins) if left + width <= begin), len(begins))
        begins[row : row + 1] = [left]
        rows.append(row)
    return rows[::-1]


def _mark(plot: _Plot, at: float, label: str, row: int) -> str:
    x, top = plot.x(at), plot.top - 14 * row
    ends = x + _LETTER * len(label) > plot.edge
    return f'<path class="mark" d="M{_n(x)} {_n(top - 10)}V{_n(plot.top + plot.height)}"/>' + _text(
        x - 3 if ends else x + 3, top - 3, label, "", "end" if ends else "start"
    )


# -- bars -------------------------------------------------------------------------------------


def _bars(drawn: Bars) -> tuple[int, str]:
    totals = [sum(value for value, _ in bar.parts) for bar in drawn.bars]
    scale = drawn.width / (max(totals, default=0) or 1)
    text, under = _paragraph(drawn.width, 14, drawn.title, "title")
    parts, y = [text], under + 24
    for bar in drawn.bars:
        text, y = _paragraph(drawn.width, y, f"{bar.name}: {bar.words}" if bar.words else bar.name)
        parts.append(text)
        x = 0.0
        for value, colour in bar.parts:
            shape = f'x="{_n(x)}" y="{_n(y + 5)}" width="{_n(value * scale)}" height="{_BAR}"'
            parts.append(f'<g class="{colour}"><rect class="fill" {shape}/></g>')
            x += value * scale
        y += _BAR_WORDS + 6
    return max(round(y) - 12, 60), "".join(parts)


def _paragraph(edge: int, y: float, words: str, css: str = "", x: float = 0.0) -> tuple[str, float]:
    """Wrap words into lines that end at ``edge``; return the lines and the last one's position."""
    letters = int((edge - x) / (_LETTER * (_BOLD if css == "title" else 1)))
    lines = textwrap.wrap(words, letters, max_lines=_MOST_LINES, placeholder=" …")
    text = "".join(_text(x, y + n * _LINE, line, css) for n, line in enumerate(lines))
    return text, y + _LINE * max(0, len(lines) - 1)


def _text(x: float, y: float, words: str, css: str = "", anchor: str = "start") -> str:
    if not words:
        return ""
    kind = f' class="{css}"' if css else ""
    place = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{_n(x)}" y="{_n(y)}"{kind}{place}>{_safe(words)}</text>'


def _safe(words: str) -> str:
    """Escape a text for XML; characters that XML forbids become spaces."""
    return escape("".join(each if each.isprintable() else " " for each in words))


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
