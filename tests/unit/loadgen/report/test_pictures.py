"""Pictures: charts of the page by name, as one SVG file."""

from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from loadgen.errors import LoadgenError, UsageError, write_text
from loadgen.report.page import picture_of
from loadgen.results.results import Results
from tests.support.runs.recorded_run import record_run, request, sample


def test_a_picture_has_the_named_charts_and_unknown_charts_are_refused(tmp_path: Path) -> None:
    samples = [sample(name, 0.0, 5.0) for name in ("resident", "heap.used")]
    with Results.open(record_run(tmp_path / "run", [request()], samples=samples)) as run:
        text = picture_of([run], ["servers.resident", "outcomes"])
        with pytest.raises(UsageError, match="there is no chart rabbits"):
            picture_of([run], ["rabbits"])
        with pytest.raises(UsageError, match=r"there is servers\.resident, servers\.heap\.used"):
            picture_of([run], ["servers.unread"])
    ET.fromstring(text)
    assert text.count('class="title"') == 2
    write_text(tmp_path / "new" / "x.svg", text)
    assert (tmp_path / "new" / "x.svg").read_text() == text


def test_a_picture_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LoadgenError, match="cannot be written"):
        write_text(tmp_path / "file" / "x.svg", "")
