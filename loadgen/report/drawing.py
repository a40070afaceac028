"""The look of the README's pictures: colours for light and dark pages, bare axes, PNG files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from loadgen.errors import LoadgenError
from loadgen.units import format_bytes

if TYPE_CHECKING:
    from pathlib import Path

LARGEST_PICTURE_BYTES = 300_000
_DOTS_PER_INCH = 150


@dataclass(frozen=True)
class Theme:
    """Colours of one variant of a picture; runs in the order of the report's."""

    suffix: str
    paper: str
    ink: str
    soft: str
    line: str
    runs: tuple[str, ...]
    answered: str
    refused: str
    shade: str


THEMES = (
    Theme(
        "", "#ffffff", "#1b2430", "#5a6675", "#e3e7ec", ("#c24e00", "#0067a5", "#008060"),
        answered="#00704f", refused="#b3261e", shade="#f1f3f6",
    ),
    Theme(
        "-dark", "#11161d", "#e8edf3", "#a3afbd", "#29323e", ("#ff9350", "#62b5f2", "#3ecf9c"),
        answered="#4fd1a1", refused="#ff8a80", shade="#1e2732",
    ),
)  # fmt: skip


def save(figure: Any, path: Path, theme: Theme) -> Path:  # noqa: ANN401
    """Write a figure as a PNG and return its path.

    Raises:
        LoadgenError: The picture cannot be written, or passes ``LARGEST_PICTURE_BYTES``.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=_DOTS_PER_INCH, facecolor=theme.paper)
    except OSError as error:
        raise LoadgenError(f"cannot write {path}: {error.strerror}") from error
    if path.stat().st_size > LARGEST_PICTURE_BYTES:
        raise LoadgenError(
            f"{path} has {format_bytes(path.stat().st_size)}; a README's picture may have "
            f"{format_bytes(LARGEST_PICTURE_BYTES)}"
        )
    return path


def dress(axes: Any, theme: Theme) -> None:  # noqa: ANN401
    """Give axes the theme's colours and nothing that carries no information."""
    axes.set_facecolor(theme.paper)
    axes.tick_params(colors=theme.soft, length=0, labelsize=9)
    for side in ("top", "right", "left", "bottom"):
        axes.spines[side].set_visible(False)
    axes.set_axisbelow(True)


def title(axes: Any, text: str, theme: Theme) -> None:  # noqa: ANN401
    """Write what a chart shows above it."""
    axes.set_title(text, loc="left", color=theme.ink, fontsize=10.5, fontweight="bold", pad=10)
