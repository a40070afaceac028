"""A fake experiment: tables follow from the document, and runs are counted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from loadgen.documents.model import Document
from loadgen.places.options import RunOptions, resolved
from tests.support.runs.recorded_run import record_run, request

Rows = Callable[[Document], list[dict[str, Any]]]


def one_answer(document: Document) -> list[dict[str, Any]]:
    """An answer to each client of each group."""
    return [request(client=n, group=g.name) for g in document.clients for n in range(g.count)]


class FakeExperiment:
    """Writes a run with rows computed from a document."""

    def __init__(self, rows: Rows = one_answer, **said: Any) -> None:
        self.rows, self.said = rows, said
        self.run: list[tuple[Document, RunOptions]] = []

    def __call__(self, document: Document, options: RunOptions) -> Path:
        document, options = resolved(document, options)
        self.run.append((document, options))
        directory = options.out / options.name
        directory.mkdir(parents=True, exist_ok=True)
        told = {
            "run": options.name, "name": document.name, "title": options.label,
            "place": options.place, **self.said,
        }  # fmt: skip
        resolved_document = document.model_dump(mode="json", by_alias=True)
        rows = [{**row, "run": options.name} for row in self.rows(document)]
        return record_run(directory, rows, document=resolved_document, **told)
