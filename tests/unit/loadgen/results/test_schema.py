"""What a run writes as ``summary.json`` has the form that its schema states."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import ValidationError

from loadgen.results.reading import load_document
from loadgen.results.schema import SCHEMA, Summary, rendered
from tests.support.runs.run_directories import STORMS, write_run

if TYPE_CHECKING:
    from pathlib import Path


def test_the_schema_beside_the_module_is_the_models() -> None:
    made = "python -m loadgen.results.schema > loadgen/results/summary.schema.json"
    assert SCHEMA.read_text(encoding="utf-8") == rendered(), made


@pytest.mark.parametrize(("name", "value"), [("answered", -1), ("wrong", "1"), ("refused", None)])
def test_a_figure_of_another_form_is_refused(tmp_path: Path, name: str, value: object) -> None:
    document = load_document(write_run(tmp_path / "run", STORMS[0], clients=4))
    with pytest.raises(ValidationError, match=name):
        Summary.model_validate({**document, name: value})
