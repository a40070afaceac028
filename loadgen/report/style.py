"""The style sheets of pages and pictures: colours are named once, for light and for dark."""

from __future__ import annotations

import re
from importlib.resources import files

_COLOUR = re.compile(r"--(\w+): light-dark\((#\w+), (#\w+)\);")
_USE = re.compile(r"var\(--(\w+)\)")


def page_style() -> str:
    """Return the style of a page with its charts; ``color-scheme`` says which colours it has."""
    return _sheet("report.css") + _sheet("chart.css")


def picture_style() -> str:
    """Return the style of a chart in a file of its own, without what only browsers understand."""
    rules = _sheet("chart.css")
    found = {name: (light, dark) for name, light, dark in _COLOUR.findall(_sheet("report.css"))}
    light, dark = (_USE.sub(lambda each: found[each[1]][which], rules) for which in (0, 1))  # noqa: B023
    coloured = "\n".join(line for line in dark.splitlines() if "#" in line)
    return f"{light}@media (prefers-color-scheme: dark) {{\n{coloured}\n}}\n"


def _sheet(name: str) -> str:
    return (files(__package__) / name).read_text(encoding="utf-8")
