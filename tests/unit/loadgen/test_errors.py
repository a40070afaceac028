"""Runs in Spark, where Spark's packages are not installed."""

import pytest

from loadgen import errors
from loadgen.errors import ExitCode, LoadgenError, require_spark


def test_a_run_in_spark_without_spark_is_refused_with_the_remedy(monkeypatch) -> None:
    require_spark()
    monkeypatch.setattr(errors, "find_spec", lambda name: None)
    with pytest.raises(
        LoadgenError, match=r'pyspark: pip install "pulsar-floodgate-loadgen\[spark\]", or'
    ):
        require_spark()


@pytest.mark.parametrize("missing", ["py4j", "pyspark.sql"])
def test_a_command_that_cannot_import_spark_names_the_missing_package(
    missing: str, loadgen, monkeypatch: pytest.MonkeyPatch
) -> None:
    def command(*_: object) -> int:
        raise ModuleNotFoundError("no module", name=missing)

    monkeypatch.setattr("loadgen.__main__.app", lambda **_: command())
    code, _, err = loadgen("topics")
    assert code == ExitCode.INTERNAL
    assert "Spark needs the package pyspark" in err


def test_any_other_failed_import_is_raised(loadgen, monkeypatch) -> None:
    def command(*_: object) -> int:
        raise ModuleNotFoundError("no module", name="pysparkle")

    monkeypatch.setattr("loadgen.__main__.app", lambda **_: command())
    with pytest.raises(ModuleNotFoundError):
        loadgen("topics")
