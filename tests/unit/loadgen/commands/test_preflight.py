"""Before a run, what its broker would do to it unnoticed is told."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from loadgen.commands.preflight import require_room
from loadgen.documents.reading import parse_document
from loadgen.run.options import RunOptions

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("as_json", [False, True])
def test_a_pattern_that_its_broker_leaves_to_the_clients_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool
) -> None:
    # Given a server of the user's, whose keys are not the document's
    document = parse_document(
        "kind: storm\ncluster: {broker: {subscriptionPatternMaxLength: 60}}\n"
        f"load: {{clients: 2, pattern: {'x' * 51}}}"
    )
    # When
    options = RunOptions("x", out=tmp_path, tasks=1, executor="process")
    require_room(document, options, None, dry=False, as_json=as_json)
    # Then
    [line] = capsys.readouterr().err.splitlines()
    told = json.loads(line)["warning"] if as_json else line.removeprefix("! ")
    assert told.startswith("load.pattern 'xxx")
