"""The families side by side: who is back when, and how often topics are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from loadgen.report.drawing import THEMES, dress, save, title

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from loadgen.report.drawing import Theme

_SIZE_INCHES = (11.0, 6.0)
_COLUMNS = (
    ("restart", "reports", "All clients start at once"),
    ("broker restart", "reports_behind_broker_restart", "The broker is started again"),
)


def draw(storms: Sequence[Mapping[str, Any]], out: Path) -> list[Path]:
    """Write one PNG per theme into ``out``, of storms of one family each; return their paths."""
    return [
        save(_draw(storms, theme), out / f"client-storm{theme.suffix}.png", theme)
        for theme in THEMES
    ]


def _draw(storms: Sequence[Mapping[str, Any]], theme: Theme) -> Any:
    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE_INCHES, layout="constrained")
    seconds = max(storm["storm"]["watched_seconds"] for storm in storms)
    charts = figure.subplots(2, 2, sharex=True, sharey="row")
    for column, (phase, report, what) in enumerate(_COLUMNS):
        back, asked = charts[0][column], charts[1][column]
        for storm, colour in zip(storms, theme.runs, strict=False):
            clients, family = storm["storm"]["clients"], storm["storm"]["family"]
            look = {"color": colour, "linewidth": 2, "label": f"{clients:,} {family}"}
            share = 100 * storm[phase]["done"] / clients
            curve = storm[phase]["curve"]
            steps = range(1, len(curve) + 1)
            back.plot([0.0, *curve], [0.0, *(share * step / len(curve) for step in steps)], **look)
            asked.plot(range(seconds), _a_second(storm, phase, report, seconds), **look)
        for axes, words in ((back, f"{what}: attached"), (asked, "Lists asked for a second")):
            dress(axes, theme)
            title(axes, words, theme)
            axes.grid(axis="y", color=theme.line)
            axes.set_xlim(0, seconds)
        asked.set_yscale("symlog", linthresh=10)
        asked.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        asked.xaxis.set_major_formatter(lambda value, _: f"{value:g} s")
        back.yaxis.set_major_formatter(lambda value, _: f"{value:.0f} %")
    charts[0][1].legend(loc="lower right", labelcolor=theme.ink, fontsize=9, frameon=False)
    return figure


def _a_second(storm: Mapping[str, Any], phase: str, report: str, seconds: int) -> list[int]:
    """Return how many lists, those of watches too, were asked for in each second of a phase."""
    begun = storm[phase]["begun"]
    found = [0] * seconds
    for one in storm[report]:
        for at in (*one["listings"], *one["watches"]):
            if 0 <= at - begun < seconds:
                found[int(at - begun)] += 1
    return found
