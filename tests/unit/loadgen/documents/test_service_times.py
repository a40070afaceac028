"""Service times as a name, from a file or literally; the numbers are kept."""

from pathlib import Path

import pytest

from loadgen.documents.faults import DocumentError
from loadgen.documents.reading import parse_document, read_document
from loadgen.documents.service_times import ServiceTimes
from loadgen.errors import UsageError

SMALL = "clients: [{name: a, do: list, count: 1}]\n"
MEASURED = """\
service_times: {accept: 1ms, read: 0.002, write: 0, read_byte: 1.0e-09, write_byte: 0}
by: {server_version: 4.2.4}
"""
TIMES = ServiceTimes(accept=0.001, read=0.002, write=0, read_byte=1e-9, write_byte=0)


def test_a_file_of_service_times_is_read_relative_to_its_document(tmp_path: Path) -> None:
    (tmp_path / "measured.yaml").write_text(MEASURED)
    file = tmp_path / "mine.yaml"
    file.write_text(f"{SMALL}servers: {{service_times: measured.yaml}}\n")
    assert read_document(str(file)).servers.service_times == TIMES


def test_a_file_in_a_setting_is_read_relative_to_the_working_directory(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("measured.yaml").write_text(MEASURED)
    document = parse_document(SMALL, Path("m.yaml"), ["servers.service_times=measured.yaml"])
    assert document.servers.service_times == TIMES


def test_a_resolved_document_holds_the_service_times_and_needs_no_file(tmp_path: Path) -> None:
    (tmp_path / "measured.yaml").write_text(MEASURED)
    setting = f"servers.service_times={tmp_path / 'measured.yaml'}"
    document = parse_document(SMALL, Path("m.yaml"), [setting])
    (tmp_path / "measured.yaml").unlink()
    again = parse_document(document.resolved_text())
    assert again.servers.service_times == TIMES
    assert again.resolved() == document.resolved()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (
            "pulsr",
            "servers.service_times 'pulsr': must be floodgate, pulsar, a file, or seconds by name",
        ),
        ("7", "servers.service_times 7: must be a mapping of keys to values"),
        ("none.yaml", "the service times none.yaml cannot be read: No such file or directory"),
        (
            "{accept: 1, read: 1, write: 1, read_byte: 1, write_byte: 1, list_nam: 1}",
            "servers.service_times.list_nam does not exist; did you mean list_name?",
        ),
        (
            "{accept: -1, read: 1, write: 1, read_byte: 1, write_byte: 1}",
            "servers.service_times.accept -1: must be at least 0.0",
        ),
    ],
)
def test_invalid_service_times_are_refused_with_their_key(value: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_document(SMALL, Path("m.yaml"), [f"servers.service_times={value}"])
    error = caught.value
    (told,) = error.sentences if isinstance(error, DocumentError) else (str(error),)
    assert told.endswith(said)


def test_a_file_without_service_times_is_refused(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("clients: []\n")
    with pytest.raises(UsageError, match=r"other.yaml has no service_times: name a file that"):
        parse_document(SMALL, Path("m.yaml"), [f"servers.service_times={tmp_path}/other.yaml"])
