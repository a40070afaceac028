"""The content of run.json."""

from __future__ import annotations

from typing import TYPE_CHECKING

from loadgen.run import documents

if TYPE_CHECKING:
    import pytest


def test_a_run_without_the_packages_of_extras_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "_PACKAGES", ("pyspark", "uvloop", "no-such-package"))
    versions = documents._environment()["versions"]
    assert versions["no-such-package"] == "not installed"
    assert versions["uvloop"] != "not installed"
