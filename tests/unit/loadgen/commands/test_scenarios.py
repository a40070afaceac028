"""``loadgen scenarios`` lists shipped scenarios, shows a scenario, and checks files."""

import json
from pathlib import Path

import pytest
import yaml

from loadgen.__main__ import main
from loadgen.documents.reading import parse_document, shipped
from loadgen.documents.schema import schema_text
from loadgen.errors import ExitCode


@pytest.fixture
def loadgen(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """Runs a command; returns exit code, standard output and standard error."""

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["loadgen", "scenarios", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        told = capsys.readouterr()
        return int(ended.value.code or 0), told.out, told.err

    return run


def test_the_list_has_a_line_for_each_shipped_scenario(loadgen) -> None:
    code, out, _ = loadgen()
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(shipped())
    assert [each["name"] for each in json.loads(loadgen("--json")[1])] == list(shipped())


def test_a_scenario_is_shown_as_written_or_resolved_with_every_value(loadgen) -> None:
    _, written, _ = loadgen("show", "restart-storm-full")
    _, resolved, _ = loadgen("show", "restart-storm-full", "--resolved")
    assert yaml.safe_load(written)["extends"] == "restart-storm"
    assert "extends" not in yaml.safe_load(resolved)
    assert parse_document(resolved).resolved() == yaml.safe_load(resolved)
    assert json.loads(loadgen("show", "restart-storm-full", "--json")[1]) == yaml.safe_load(
        resolved
    )
    changed = loadgen("show", "storm", "--set", "clients.all.count=3")[1]
    assert yaml.safe_load(changed)["clients"][0]["count"] == 3


def test_the_shipped_schema_is_printed(loadgen) -> None:
    assert loadgen("schema")[1] == schema_text()


def test_every_error_of_every_checked_file_is_reported(loadgen, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("extends: storm\n")
    bad.write_text("extends: storm\nclinets: 1\nseeds: 2\n")
    code, out, err = loadgen("check", str(good), str(bad), str(tmp_path / "none.yaml"))
    assert code == ExitCode.USAGE
    assert out == f"{good}: 200 clients: list\n"
    assert [line.partition(": ")[2] for line in err.splitlines()] == [
        f"{bad}, line 2: clinets does not exist; did you mean clients?",
        f"{bad}, line 3: seeds does not exist; did you mean seed?",
        f"the scenario {tmp_path / 'none.yaml'} cannot be read: No such file or directory",
    ]
    assert loadgen("check", "storm", str(good))[0] == 0


def test_clients_due_after_the_end_of_the_run_are_warned_of(loadgen, tmp_path: Path) -> None:
    late = tmp_path / "late.yaml"
    late.write_text(
        "clients:\n"
        "  - {name: soon, do: list, count: 5}\n"
        "  - {name: slow, do: list, count: 60, arrive: {kind: constant, rate: 2/s}}\n"
        "phases: {warm_up: 5s, measure: 10s, hold: 5s}\n"
    )
    code, _, err = loadgen("check", str(late))
    assert code == 0
    assert err == (
        f"loadgen: {late}: warning: group slow: 20 of 60 clients never start: the last is due "
        "at 29.5 s, and the run ends at 20.0 s; raise phases.measure, or let them arrive "
        "sooner\n"
    )


def test_a_pattern_longer_than_the_brokers_limit_is_warned_of(loadgen, tmp_path) -> None:
    long = tmp_path / "long.yaml"
    group = f"{{name: all, pattern: {'x' * 51}}}"
    long.write_text(f"extends: storm\nclients: [{group}]\n")
    code, out, err = loadgen("check", str(long))
    assert code == 0
    assert out == f"{long}: 200 clients: list\n"
    assert err.startswith(f"loadgen: {long}: warning: group all: the pattern ")


def test_an_unknown_scenario_is_refused_with_the_nearest_name(loadgen) -> None:
    code, _, err = loadgen("show", "restart-strom")
    assert code == ExitCode.USAGE
    assert "there is no scenario 'restart-strom'; did you mean restart-storm?" in err
