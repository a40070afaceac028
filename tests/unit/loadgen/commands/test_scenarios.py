"""``loadgen scenarios`` lists shipped scenarios, shows a scenario, and checks files."""

import json
from pathlib import Path

import yaml

from loadgen.documents.reading import parse_document, shipped
from loadgen.documents.schema import schema_text
from loadgen.errors import ExitCode


def test_the_list_has_a_line_for_each_shipped_scenario(loadgen) -> None:
    code, out, _ = loadgen("scenarios")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(shipped())
    told = json.loads(loadgen("scenarios", "--json")[1])
    assert [each["name"] for each in told] == list(shipped())


def test_a_scenario_is_shown_as_written_or_resolved_with_every_value(loadgen) -> None:
    _, written, _ = loadgen("scenarios", "show", "restart-storm-full")
    _, resolved, _ = loadgen("scenarios", "show", "restart-storm-full", "--resolved")
    assert yaml.safe_load(written)["extends"] == "restart-storm"
    assert "extends" not in yaml.safe_load(resolved)
    assert parse_document(resolved).resolved() == yaml.safe_load(resolved)
    _, as_json, _ = loadgen("scenarios", "show", "restart-storm-full", "--json")
    assert json.loads(as_json) == yaml.safe_load(resolved)
    changed = loadgen("scenarios", "show", "storm", "--set", "clients.all.count=3")[1]
    assert yaml.safe_load(changed)["clients"][0]["count"] == 3


def test_the_shipped_schema_is_printed(loadgen) -> None:
    assert loadgen("scenarios", "schema")[1] == schema_text()


def test_every_error_of_every_checked_file_is_reported(loadgen, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("extends: storm\n")
    bad.write_text("extends: storm\nclinets: 1\nseeds: 2\n")
    code, out, err = loadgen("scenarios", "check", str(good), str(bad), str(tmp_path / "none.yaml"))
    assert code == ExitCode.USAGE
    assert out == f"{good}: 200 clients: list\n"
    assert [line.partition(": ")[2] for line in err.splitlines()] == [
        f"{bad}, line 2: clinets does not exist; did you mean clients?",
        f"{bad}, line 3: seeds does not exist; did you mean seed?",
        f"the scenario {tmp_path / 'none.yaml'} cannot be read: No such file or directory",
    ]
    assert loadgen("scenarios", "check", "storm", str(good))[0] == 0


def test_a_pattern_longer_than_the_brokers_limit_is_warned_of(loadgen, tmp_path) -> None:
    long = tmp_path / "long.yaml"
    group = f"{{name: all, pattern: {'x' * 51}}}"
    long.write_text(f"extends: storm\nclients: [{group}]\n")
    code, out, err = loadgen("scenarios", "check", str(long))
    assert code == 0
    assert out == f"{long}: 200 clients: list\n"
    assert err.startswith(f"loadgen: {long}: warning: group all: the pattern ")
