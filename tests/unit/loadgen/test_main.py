import inspect
import json
import subprocess
import sys

import pytest

from client.admin.commands import command_line as admin
from loadgen import __main__ as command_line
from loadgen.errors import ExitCode, LoadgenError
from proto.version import VERSION


def test_the_help_overview_imports_no_heavy_packages() -> None:
    code = (
        "import sys; sys.argv = ['loadgen', '--help']\n"
        "from loadgen.__main__ import main\n"
        "try: main()\n"
        "finally: print(sorted({'pyspark', 'pyarrow', 'numpy', 'aiohttp'} & set(sys.modules)))\n"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answer.stdout.splitlines()[-1] == "[]"
    for name in ("topics", "load", "run", "report", "demo", "picture"):
        assert name in answer.stdout


@pytest.mark.parametrize("name", sorted(command_line.SUBCOMMANDS))
def test_help_fits_80_columns_cuts_no_flag_and_has_an_example(loadgen, monkeypatch, name) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = loadgen(name, "--help")[1].splitlines()
    assert max(map(len, lines)) <= 80
    assert not [line for line in lines if "\N{HORIZONTAL ELLIPSIS}" in line]
    assert any(line.strip().startswith(f"loadgen {name}") for line in lines)


@pytest.mark.parametrize("name", sorted(command_line.SUBCOMMANDS))
def test_no_line_of_a_description_is_broken_at_80_columns(name: str) -> None:
    command = command_line.imported_command(name)
    several = getattr(command, "commands", {}).values()
    for each in (command, *several):
        _, *paragraphs = inspect.cleandoc(each.help or "").split("\n\n")
        lines = [line for paragraph in paragraphs for line in paragraph.splitlines()]
        assert [line for line in lines if len(line) > 78] == []


@pytest.mark.parametrize("arguments", [["-h"], ["topics", "-h"], ["run", "-h"]])
def test_the_option_h_shows_the_help_of_every_command(loadgen, arguments: list[str]) -> None:
    code, out, _ = loadgen(*arguments)
    assert (code, "Usage:" in out) == (0, True)


def test_the_version_option_prints_the_version(loadgen) -> None:
    assert loadgen("--version") == (0, f"Floodgate {VERSION}\n", "")


def test_topics_are_generated_and_reported_as_json(loadgen, tmp_path) -> None:
    shape = ("--topics", 100, "--namespaces", 2)
    code, out, _ = loadgen("topics", *shape, "--out", tmp_path / "x", "--json")
    summary = json.loads(out)
    assert (code, summary["topics"], summary["namespaces"]) == (0, 100, 2)
    assert (tmp_path / "x" / "_manifest.json").exists()


def test_a_usage_error_is_a_single_line_with_its_exit_code(loadgen) -> None:
    code, _, err = loadgen("topics", "--topics", 1, "--namespaces", 2)
    assert (code, err) == (
        ExitCode.USAGE,
        "loadgen: 1 topics cannot fill 2 namespaces; ask for at least one topic a namespace.\n",
    )


def test_every_failure_keeps_its_own_exit_code(loadgen, monkeypatch) -> None:
    def fail() -> None:
        raise LoadgenError("An answer was wrong.", ExitCode.CORRECTNESS)

    monkeypatch.setattr("loadgen.commands.topics.topics", fail)
    assert loadgen("topics")[0] == 97


@pytest.mark.parametrize(
    "arguments", [["topcs"], ["topics", "--nope"], ["topics", "--topics", "x"]]
)
def test_a_misspelled_command_option_or_value_is_a_usage_error(
    loadgen, arguments: list[str]
) -> None:
    assert loadgen(*arguments)[0] == ExitCode.USAGE


@pytest.mark.parametrize("name", ["storm", "mine.yaml"])
def test_a_scenario_typed_as_a_command_is_refused_with_the_run_command(loadgen, name) -> None:
    code, _, err = loadgen(name, "--json")
    assert code == ExitCode.USAGE
    error = json.loads(err)["error"]
    assert error == f"'{name}' is a scenario, not a command. Run it: loadgen run {name}"


def test_an_interrupt_exits_with_130_and_a_single_line(loadgen, monkeypatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("loadgen.commands.topics.topics", interrupted)
    code, _, err = loadgen("topics")
    assert (code, err) == (ExitCode.INTERRUPTED, "loadgen: interrupted before it was done\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ("report", "nowhere", "--json"),
        ("report", "--nonsense", "--json"),
        ("run", "--json"),
        ("run", "--service-url", "pulsar://10.0.0.1:6650", "--json"),
    ],
)
def test_with_json_errors_are_printed_as_json(loadgen, arguments) -> None:
    code, out, err = loadgen(*arguments)
    assert (code, out) == (ExitCode.USAGE, "")
    assert list(json.loads(err)) == ["error"]


def test_without_a_command_both_programs_show_their_help_and_exit_alike(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    codes = []
    for name, main in (("loadgen", command_line.main), ("floodgate-admin", admin.main)):
        monkeypatch.setattr(sys, "argv", [name])
        with pytest.raises(SystemExit) as caught:
            main()
        codes.append(caught.value.code)
        assert "Usage:" in capsys.readouterr().out
    assert codes == [ExitCode.USAGE] * 2


@pytest.mark.parametrize(
    "words",
    [
        ("snapshot", "--admin-url", "http://ann:planted@127.0.0.1:1"),
        ("run", "--admin-url=broker=http://ann:pl/anted@127.0.0.1:1"),
        ("run", "--admin-url", "broker=http://ann:pl=anted@127.0.0.1:1"),
        ("run", "--service-url", "pulsar://ann:planted@127.0.0.1:1"),
    ],
)
def test_a_password_in_an_address_is_refused_without_being_shown(loadgen, words) -> None:
    code, _, err = loadgen(*words)
    assert code == ExitCode.USAGE
    assert "--auth-plugin basic" in err
    assert "anted" not in err
