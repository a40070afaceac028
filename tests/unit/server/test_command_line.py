"""A user's mistakes on the command line end in a sentence and a status."""

import io
import logging
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from broker.configuration.config import BrokerConfig, known_keys
from limiter.permits.ledger import UnbalancedLedgerError
from proto.version import VERSION
from server.command_line import Program, run_program
from server.errors import ListenError
from server.imports import Imports


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


class Result(NamedTuple):
    exit_code: int
    stdout: str
    stderr: str


class Served:
    """Stand-in server recording the start arguments."""

    def __init__(self, imports: bool = True) -> None:
        self.started: list[tuple[BrokerConfig, Imports]] = []
        self.error: BaseException | None = None
        self.imports = imports

    async def serve(self, config: BrokerConfig, imports: Imports) -> int:
        if self.error:
            raise self.error
        self.started.append((config, imports))
        return 0

    def invoke(self, *arguments: str) -> Result:
        """Run a command line."""
        program = Program(
            "broker",
            "Answer topic listings.",
            ("floodgate-broker broker.conf", "floodgate-broker --set brokerServicePort=0"),
            known_keys,
            BrokerConfig.from_properties,
            self.serve,
            self.imports,
        )
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
            run_program(program, arguments)
        assert isinstance(ended.value.code, int)
        return Result(ended.value.code, out.getvalue(), err.getvalue())


def test_settings_override_the_file_and_imports_are_passed_on(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("brokerServicePort=1\nwebServicePort=2\n")
    served = Served()
    result = served.invoke(
        str(file), "--set", "webServicePort=3", "--set", "webServicePort=4", "--import", "a",
        "--import", "b",
    )  # fmt: skip
    assert (result.exit_code, result.stdout) == (0, "")
    ((config, imports),) = served.started
    assert (config.broker_service_port, config.web_service_port) == (1, 4)
    assert imports == Imports((Path("a"), Path("b")))


def test_options_of_imports_are_passed_on() -> None:
    served = Served()
    served.invoke("--import", "a", "--skip-invalid")
    served.invoke("--import", "a", "--import-again")
    assert [imports for _, imports in served.started] == [
        Imports((Path("a"),), skip_invalid=True),
        Imports((Path("a"),), again=True),
    ]


def test_without_arguments_the_defaults_are_served() -> None:
    served = Served()
    result = served.invoke()
    assert result.exit_code == 0
    assert served.started[0][0].broker_service_port == 6650
    assert served.started[0][1] == Imports()


def test_all_problems_are_printed_as_plain_lines_with_status_2() -> None:
    served = Served()
    result = served.invoke("--set", "webServicePort=x", "--set", "tlsEnabled=true")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [
        "webServicePort='x': expected a whole number from 0 to 65535",
        "tlsEnabled=true: no port speaks TLS; set brokerServicePortTls or webServicePortTls "
        "instead",
    ]
    assert served.started == []


def test_problems_of_file_and_settings_are_both_reported() -> None:
    result = Served().invoke("/no/such/file", "--set", "nothing")
    assert result.exit_code == 2
    first, second = result.stderr.splitlines()
    assert first.startswith("/no/such/file: cannot be read (No such file or directory)")
    assert second.startswith("--set 'nothing' is not key=value")


def test_a_failed_start_is_a_single_sentence_with_status_1() -> None:
    served = Served()
    served.error = ListenError("cannot listen on 127.0.0.1:1: the port is in use")
    result = served.invoke("--set", "advertisedAddress=a")
    assert result.exit_code == 1
    assert result.stderr == "cannot listen on 127.0.0.1:1: the port is in use\n"


def test_unreleased_memory_ends_with_status_3_without_a_stack_trace() -> None:
    served = Served()
    served.error = UnbalancedLedgerError([])
    result = served.invoke("--log-level", "error")
    # The service has logged the error
    assert result == (3, "", "")


@pytest.mark.parametrize(
    "arguments", [["--nonsense"], ["a", "b"], ["--log-level", "loud"], ["--log-format", "xml"]]
)
def test_unknown_arguments_end_with_status_2_without_a_stack_trace(arguments: list[str]) -> None:
    result = Served().invoke(*arguments)
    assert result.exit_code == 2
    assert "Error:" in result.stderr
    assert "Traceback" not in result.stderr
    assert "<Log" not in result.stderr


def test_an_interrupted_start_ends_with_status_130_without_a_stack_trace() -> None:
    served = Served()
    served.error = KeyboardInterrupt()
    assert served.invoke() == (130, "", "")


def test_a_program_without_imports_refuses_the_import_option() -> None:
    assert Served(imports=False).invoke("--import", "a").exit_code == 2


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_help_shows_examples(flag: str) -> None:
    result = Served().invoke(flag)
    assert result.exit_code == 0
    assert "floodgate-broker --set brokerServicePort=0" in result.stdout


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("brokerServisePort", "unknown key; did you mean brokerServicePort?"),
        ("floodgateprofile", "unknown key; did you mean floodgateProfile?"),
        ("zzz", "unknown key; correct or remove it"),
        ("z" * 200, f"--set {'z' * 100}: unknown key; correct or remove it"),
    ],
)
def test_setting_an_unknown_key_is_refused_with_a_suggestion(key: str, sentence: str) -> None:
    served = Served()
    result = served.invoke("--set", f"{key}=s3cret", "--set", "brokerClient_any=1")
    assert (result.exit_code, result.stdout, served.started) == (2, "", [])
    assert result.stderr.rstrip().endswith(sentence)
    assert len(result.stderr.splitlines()) == 1
    assert "s3cret" not in result.stderr


def test_the_version_is_printed_without_starting_a_server() -> None:
    served = Served()
    result = served.invoke("--version")
    assert (result.exit_code, result.stdout) == (0, f"Floodgate {VERSION}\n")
    assert served.started == []


def test_notices_are_logged_to_standard_error(tmp_path: Path) -> None:
    file = tmp_path / "broker.conf"
    file.write_text("brokerServisePort=1\n")
    result = Served().invoke("--log-format", "json", str(file))
    assert "brokerServisePort (did you mean brokerServicePort?)" in result.stderr
    assert result.stdout == ""
