"""A restarted server is killed, and a successor takes the place."""

import errno
import os
import signal
import subprocess
from pathlib import Path

import pytest

from loadgen.places.server_process import ServerLaunch, ServerStartError, restartable_server
from tests.unit.loadgen.places.running import is_running

# Writes the given ports, and ignores SIGTERM: only a kill helps.
SERVER = """
import os, signal, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN if {stubborn} else signal.SIG_DFL)
told = dict(part.split("=") for part in sys.argv[2::2])
service, web = told.get("servicePort", "71"), told.get("webServicePort", "72")
sys.stderr.write(f"{{service}} {{web}}\\n")
if service == "71" and {fails_again}:
    sys.exit(1)
urls = f"pulsar://127.0.0.1:{{int(service) or 71}} http://127.0.0.1:{{int(web) or 72}}"
print(f"READY proxy {{urls}}", flush=True)
signal.pause()
"""


@pytest.fixture
def launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServerLaunch:
    """Return a launch of ``proxy`` whose module is a script in the working directory."""
    monkeypatch.chdir(tmp_path)
    ports = {"servicePort": "0", "webServicePort": "0"}
    return ServerLaunch("proxy", ports, tmp_path / "proxy.log")


def script(launch: ServerLaunch, *, stubborn: bool = False, fails_again: bool = False) -> None:
    text = SERVER.format(stubborn=stubborn, fails_again=fails_again)
    (launch.log.parent / "proxy.py").write_text(text)


def test_a_restart_kills_the_server_and_starts_a_process_on_the_same_ports(
    launch: ServerLaunch,
) -> None:
    script(launch, stubborn=True)
    with restartable_server(launch) as running:
        first = running.server
        script(launch)
        running.restart()
        second = running.server
        assert (second.service_url, second.web_url) == (first.service_url, first.web_url)
        assert second.pid != first.pid
        assert not is_running(first.pid)
        assert is_running(second.pid)
    assert not is_running(second.pid)
    assert launch.log.read_text() == "0 0\n71 72\n"


def test_a_server_that_fails_to_restart_is_reported_by_name(launch: ServerLaunch) -> None:
    script(launch, fails_again=True)
    with (
        restartable_server(launch) as running,
        pytest.raises(ServerStartError, match="The proxy did not start"),
    ):
        running.restart()


def test_a_paused_server_is_stopped_at_the_end(launch: ServerLaunch) -> None:
    script(launch)
    with restartable_server(launch) as running:
        running.pause()
        assert os.WIFSTOPPED(os.waitpid(running.server.pid, os.WUNTRACED)[1])
    assert not is_running(running.server.pid)


def test_a_resumed_server_handles_signals_again(launch: ServerLaunch) -> None:
    script(launch)
    with restartable_server(launch) as running:
        running.pause()
        running.go_on()
        os.kill(running.server.pid, signal.SIGTERM)
        assert running._process is not None
        assert running._process.wait(10) == -signal.SIGTERM


def test_a_server_process_that_cannot_be_started_is_reported(launch, monkeypatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refused)
    said = r"proxy cannot be started: .* unavailable$"
    with pytest.raises(ServerStartError, match=said), restartable_server(launch):
        pass
