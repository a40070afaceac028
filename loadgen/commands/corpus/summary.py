"""The summary of a corpus that was made, for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table

if TYPE_CHECKING:
    from loadgen.topics.corpus import Corpus


def corpus_summary(corpus: Corpus, seconds: float) -> dict[str, object]:
    """Return what ``--json`` prints about a corpus that was made in ``seconds``."""
    manifest = corpus.manifest
    return {
        "schema_version": 1,
        "directory": str(corpus.directory),
        "topics": manifest.topics,
        "namespaces": len(manifest.namespaces),
        "largest_namespace": max(entry.topics for entry in manifest.namespaces.values()),
        "tenants": len(manifest.tenants),
        "seed": manifest.seed,
        "mean_name_bytes": round(manifest.name_bytes / manifest.topics, 1),
        "files": len(corpus.files),
        "file_bytes": corpus.file_bytes,
        "seconds": round(seconds, 2),
    }


def summary_table(summary: dict[str, object]) -> Table:
    """Return the summary for people."""
    table = Table(title=f"Topics in {summary['directory']}", show_header=False)
    for name, value in summary.items():
        if name not in ("schema_version", "directory") and value is not None:
            text = f"{value:,}" if isinstance(value, int) and name != "seed" else str(value)
            table.add_row(name.replace("_", " "), text)
    return table
