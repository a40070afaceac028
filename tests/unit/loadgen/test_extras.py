"""Commands whose packages come with an extra, where that is not installed."""

from __future__ import annotations

import sys

import pytest

from loadgen import extras
from loadgen.__main__ import main
from loadgen.errors import ExitCode, LoadgenError
from loadgen.extras import SPARK, missing_extra, require


def test_what_needs_a_missing_package_is_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    with pytest.raises(LoadgenError, match=r'pyspark: pip install "floodgate\[loadgen\]", or'):
        require(SPARK)


def test_a_package_that_is_there_is_not_refused() -> None:
    require(SPARK)


@pytest.mark.parametrize("name", ["py4j.protocol", "pyspark"])
def test_an_import_of_an_extra_that_fails_is_a_sentence(name: str) -> None:
    error = missing_extra(ModuleNotFoundError("no module", name=name))
    assert "floodgate[loadgen]" in str(error)


def test_any_other_import_that_fails_is_none() -> None:
    assert missing_extra(ModuleNotFoundError("no module", name="pysparkle")) is None


def test_a_command_ends_with_the_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Given: a name for which the import machinery has None is a module that is not there
    for name in ("py4j", "py4j.protocol", "loadgen.spark.session"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(extras._WITHOUT, "loadgen", extras._WITHOUT[SPARK])
    monkeypatch.setattr(sys, "argv", ["loadgen", "topics", "--place", "spark", "--out", "/x"])
    # When
    with pytest.raises(SystemExit) as caught:
        main()
    # Then
    assert caught.value.code == ExitCode.INTERNAL
    assert "Spark needs the package pyspark" in capsys.readouterr().err
