"""Repeats of one run: their names, and what they show together."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from loadgen.analysis.compare import compare
from loadgen.analysis.comparison_text import document_of, table_of
from loadgen.commands.comparing.compare import load_runs
from loadgen.commands.run_outcome import show
from loadgen.documents.document import MOST_REPEATS
from loadgen.errors import ExitCode, UsageError
from loadgen.report.tables import summary_console

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from loadgen.run.options import RunOptions
    from loadgen.run.run import RunResult


def numbered(options: RunOptions, repeats: int) -> list[RunOptions]:
    """Return the options of each repeat: names with a number, and one label.

    Raises:
        UsageError: There are none, or too many.
    """
    if not 1 <= repeats <= MOST_REPEATS:
        raise UsageError(f"--repeats {repeats}: must be 1 to {MOST_REPEATS:,}")
    if repeats == 1:
        return [options]
    label = options.label or options.name
    return [
        replace(options, name=f"{options.name}-{number}", label=label)
        for number in range(1, repeats + 1)
    ]


def run_all(
    repeats: Sequence[RunOptions], run_once: Callable[[RunOptions], RunResult], *, as_json: bool
) -> list[RunResult]:
    """Run each repeat, show it, and in the end all together; a Ctrl-C ends with the one it met."""
    results: list[RunResult] = []
    for options in repeats:
        results.append(run_once(options))
        if not as_json or len(repeats) == 1:
            show(results[-1], as_json=as_json)
        if results[-1].exit_code is ExitCode.INTERRUPTED:
            break
    if len(repeats) > 1:
        _show_together(results, as_json=as_json)
    return results


def _show_together(results: Sequence[RunResult], *, as_json: bool) -> None:
    comparison = compare(load_runs([result.directory for result in results]))
    if as_json:
        summaries = [result.summary for result in results]
        content = {"runs": summaries, "together": document_of(comparison)}
        sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    else:
        summary_console().print(table_of(comparison))
