"""Servers are awaited until ready, and stopped however the block ends."""

import os
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from loadgen.places.server_process import (
    ServerLaunch,
    ServerStartError,
    running_server,
    termination_interrupts,
)
from tests.unit.loadgen.places.running import is_running

READY = 'print("READY broker pulsar://127.0.0.1:1 http://127.0.0.1:2", flush=True)'
REPOSITORY = Path(__file__).resolve().parents[4]
OWNER = """
import os, signal, sys
from pathlib import Path
from loadgen.places.server_process import ServerLaunch, running_server
log = Path(sys.argv[1])
os.chdir(log.parent.parent)
with running_server(ServerLaunch("broker", {}, log)) as server:
    print(server.pid, flush=True)
    signal.pause()
"""
SERVE = f"import signal, sys\nsys.stderr.write('up\\n')\n{READY}\nsignal.pause()\n"


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServerLaunch:
    """Return a launch of ``broker`` whose module is a script in the working directory."""
    monkeypatch.chdir(tmp_path)
    return ServerLaunch("broker", {}, tmp_path / "logs" / "broker.log")


def script(launch: ServerLaunch, text: str) -> None:
    (launch.log.parent.parent / "broker.py").write_text(text)


def test_the_ready_line_of_a_server_holds_its_addresses(launch: ServerLaunch) -> None:
    script(launch, SERVE)
    with running_server(launch) as server:
        assert server.service_url == "pulsar://127.0.0.1:1"
        assert server.web_url == "http://127.0.0.1:2"
    assert launch.log.read_text() == "up\n"


def test_server_settings_become_command_line_arguments(tmp_path: Path) -> None:
    launch = ServerLaunch("proxy", {"a": "1", "b": "x y"}, tmp_path / "log", ("--import", "d"))
    expected = [sys.executable, "-m", "proxy", "--set", "a=1", "--set", "b=x y", "--import", "d"]
    assert launch.command() == expected


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_a_server_stops_when_the_block_ends_with_any_error(launch, error) -> None:
    script(launch, SERVE)
    pids: list[int] = []

    def fail_while_running() -> None:
        with running_server(launch) as server:
            pids.append(server.pid)
            raise error

    with pytest.raises(error):
        fail_while_running()
    assert not is_running(pids[0])


def test_a_server_drains_on_sigterm_before_its_end(launch: ServerLaunch) -> None:
    drain = "signal.signal(15, lambda *_: (sys.stderr.write('drained\\n'), sys.exit(0)))"
    script(launch, f"import signal, sys\n{drain}\n{SERVE}")
    with running_server(launch):
        pass
    assert launch.log.read_text() == "up\ndrained\n"


def test_a_server_that_ignores_sigterm_is_killed(launch: ServerLaunch, monkeypatch) -> None:
    monkeypatch.setattr("loadgen.places.server_process.stop.__defaults__", (0.05,))
    script(launch, f"import signal\nsignal.signal(15, signal.SIG_IGN)\n{SERVE}signal.pause()\n")
    with running_server(launch) as server:
        pid = server.pid
    assert not is_running(pid)


@pytest.mark.parametrize(
    ("text", "seconds", "said"),
    [
        ("sys.stderr.write('in use\\n'); sys.exit(3)", 60, r"(?s)exit code 3.*in use"),
        ("sys.stderr.write('up\\n'); raise OSError('x')", 60, r"(?s)exit code 1 .*up.*OSError: x"),
        ("print('hello', flush=True); signal.pause()", 60, "printed 'hello' instead"),
        ("print('READY br', end='', flush=True); signal.pause()", 5, "printed 'READY br' instead"),
        ("signal.pause()", 0.05, r"was not ready after 0\.05 s"),
    ],
    ids=["exits", "crashes", "prints another line", "prints half a ready line", "prints nothing"],
)
def test_a_server_that_does_not_become_ready_is_reported_with_the_reason_and_its_log(
    launch: ServerLaunch, text: str, seconds: float, said: str
) -> None:
    script(launch, f"import signal, sys\n{text}\n")
    with pytest.raises(ServerStartError, match=said):
        running_server(launch, seconds).__enter__()


def test_a_server_that_refuses_its_input_is_reported_with_its_own_error_only(tmp_path) -> None:
    # Given a broker that logs a long configuration, then looks at topics
    topics = tmp_path / "topics.txt"
    topics.write_text("persistent://a/b/right\nwrong\n")
    settings = {"brokerServicePort": "0", "webServicePort": "0"}
    launch = ServerLaunch("broker", settings, tmp_path / "log", ("--import", str(topics)))
    with pytest.raises(ServerStartError) as raised:
        running_server(launch).__enter__()
    assert "floodgateProfile=" in launch.log.read_text()
    assert str(raised.value).splitlines() == [
        f"The broker did not start: --import: {topics}: 1 of 2 topics are invalid",
        "  line 2: 'wrong' is not a full topic name; expected persistent://tenant/namespace/topic",
        "nothing was imported: correct the file, or skip invalid topics with --skip-invalid",
    ]


def test_the_error_of_a_refusing_server_is_cut_after_its_first_lines(launch) -> None:
    script(launch, "import sys\nprint(*range(100), sep='\\n', file=sys.stderr)\nsys.exit(2)\n")
    with pytest.raises(ServerStartError) as raised:
        running_server(launch).__enter__()
    lines = str(raised.value).splitlines()
    assert lines[0] == "The broker did not start: 0"
    assert lines[-1] == f"and 70 more lines in {launch.log}"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_termination_signal_is_raised_as_a_keyboard_interrupt(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), termination_interrupts():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


@pytest.mark.skipif(shutil.which("setpriv") is None, reason="the kernel is asked through setpriv")
def test_a_server_ends_if_its_parent_process_is_killed(launch: ServerLaunch) -> None:
    # Given a process that has started a server
    script(launch, SERVE)
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(launch.log)], stdout=subprocess.PIPE, cwd=REPOSITORY
    )
    assert owner.stdout is not None
    server = os.pidfd_open(int(owner.stdout.readline()))

    # When the process is killed
    owner.kill()
    owner.communicate()

    # Then the server ends too
    assert select.select([server], [], [], 10)[0]
    os.close(server)
