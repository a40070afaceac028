"""Command line of the fuzzing campaign (``make fuzz`` runs all targets) and its table."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from tests.fuzz.campaign import NoAtherisError, Outcome, amounts, fuzzed
from tests.fuzz.registry import TARGETS

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
_COLUMNS = 120


@app.command()
def fuzz(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"Some of {', '.join(TARGETS)}; all without.")
    ] = None,
    inputs: Annotated[int | None, typer.Option(min=1, help="Inputs of each target.")] = None,
    share: Annotated[
        float, typer.Option(min=0.0, help="Or: this part of the whole amounts, 10,000,000 in all.")
    ] = 1.0,
    out: Annotated[Path, typer.Option(help="Corpus, finds and figures.")] = Path("out/fuzz"),
    seed: Annotated[int | None, typer.Option(help="Of the search; a new one without.")] = None,
) -> None:
    """Fuzz targets, guided by coverage, and report broken rules.

    Exit code 1 after a broken rule.

    Examples:
      python -m tests.fuzz

      python -m tests.fuzz frames tokens --inputs 20000
    """
    for name in names or ():
        if name not in TARGETS:
            raise typer.BadParameter(
                f"{name!r} is none of {', '.join(TARGETS)}", param_hint="TARGET"
            )
    console, found = Console(width=_COLUMNS), []
    chosen = secrets.randbelow(1 << 31) if seed is None else seed
    console.print(f"Seed {chosen}; finds go to {out}", highlight=False)
    for name, amount in amounts(names, inputs, share).items():
        with console.status(TARGETS[name].title) as status:
            title = TARGETS[name].title
            try:
                found.append(
                    fuzzed(
                        name,
                        amount,
                        out,
                        chosen,
                        lambda said, t=title: status.update(f"{t}: {said}"),
                    )
                )
            except NoAtherisError as error:
                raise typer.BadParameter(str(error)) from None
    console.print(table(found))
    raise typer.Exit(0 if all(one.found_nothing for one in found) else 1)


def table(found: list[Outcome]) -> Table:
    shown = Table(title="Fuzzing", title_justify="left")
    for head in (
        "Target",
        "Inputs",
        "a second",
        "Lines",
        "Edges",
        "Valid",
        "Longest turn",
        "Finds",
    ):
        shown.add_column(head, justify="left" if head == "Target" else "right", no_wrap=True)
    for one in found:
        valid = "" if one.valid_share is None else f"{one.valid_share:.0%}"
        shown.add_row(
            one.name,
            f"{one.inputs:,}",
            f"{one.inputs / one.seconds:,.0f}" if one.seconds else "",
            f"{one.reached_lines:,} of {one.lines:,}",
            f"{one.edges:,}",
            valid,
            f"{one.longest_turn_ms:.1f} ms",
            str(len(one.finds) + len(one.slow)),
        )
    total = sum(one.inputs for one in found)
    shown.add_section()
    shown.add_row(
        "all",
        f"{total:,}",
        "",
        "",
        "",
        "",
        "",
        str(sum(len(one.finds) + len(one.slow) for one in found)),
    )
    return shown


if __name__ == "__main__":
    app()
