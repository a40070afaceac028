"""Where results go is settled before a storm, and nobody else's files are touched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from loadgen.errors import LoadgenError, UsageError
from loadgen.run.directory import forget_extras, replaceable_run_directory

if TYPE_CHECKING:
    from pathlib import Path


def test_an_older_run_is_replaced_and_what_not_every_run_writes_forgotten(tmp_path: Path) -> None:
    # Given
    for name in ("run.json", "report.html", "index.html", "stuck-peers.parquet", "broker.log"):
        (tmp_path / name).touch()
    # When
    with replaceable_run_directory(tmp_path):
        forget_extras(tmp_path)
    # Then
    assert {path.name for path in tmp_path.iterdir()} == {"run.json", "broker.log"}


def test_other_files_are_not_overwritten(tmp_path: Path) -> None:
    # Given
    (tmp_path / "thesis.tex").touch()
    # When / Then
    with (
        pytest.raises(UsageError, match=r"holds thesis\.tex, which no run has written"),
        replaceable_run_directory(tmp_path),
    ):
        pytest.fail("the storm began")


def test_a_place_that_cannot_be_made_is_refused_before_the_storm(tmp_path: Path) -> None:
    # Given
    (tmp_path / "file").touch()
    # When / Then
    with (
        pytest.raises(UsageError, match="choose another --out"),
        replaceable_run_directory(tmp_path / "file" / "run"),
    ):
        pytest.fail("the storm began")


def test_a_failed_run_leaves_no_empty_directory(tmp_path: Path) -> None:
    with pytest.raises(LoadgenError), replaceable_run_directory(tmp_path / "run"):
        raise LoadgenError("It was not to be.")
    assert not list(tmp_path.iterdir())
