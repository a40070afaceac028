"""The plug-in's servers: started once, emptied for each test, restarted on failure."""

import io
import json
import urllib.error
from collections.abc import Sequence
from email.message import Message
from pathlib import Path
from urllib.request import Request

import pytest
from pulsar_floodgate import pytest_plugin
from pulsar_floodgate.pytest_plugin import FloodgateError, FloodgateServer, KeptServer


class Kept(KeptServer):
    """A server whose process is only counted."""

    begun = 0

    def _started(self, settings: Sequence[str]) -> FloodgateServer:
        self.begun += 1
        return FloodgateServer("pulsar://h:1", "http://h:2", self.begun)


SERVER = FloodgateServer("pulsar://h:1", "http://h:2", 1)


class Web:
    """Web ports with uniform answers or refusals."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer: bytes | Exception = b""

    def open(self, request: Request, timeout: float) -> io.BytesIO:
        self.asked.append(f"{request.get_method()} {request.full_url}")
        if isinstance(self.answer, Exception):
            raise self.answer
        return io.BytesIO(self.answer)


@pytest.fixture(autouse=True)
def web(monkeypatch: pytest.MonkeyPatch) -> Web:
    web = Web()
    monkeypatch.setattr(pytest_plugin, "_WITHOUT_PROXY", web)
    return web


def refusal(said: bytes) -> urllib.error.HTTPError:
    return urllib.error.HTTPError("u", 404, "no", Message(), io.BytesIO(said))


@pytest.mark.parametrize(
    ("role", "request_"),
    [
        ("broker", "POST http://h:2/admin/v2/floodgate/reset"),
        ("proxy", "DELETE http://h:2/admin/v2/floodgate/faults"),
    ],
)
def test_a_server_is_reset_and_reused(tmp_path: Path, web: Web, role: str, request_: str) -> None:
    kept = Kept(role, [], tmp_path)
    assert [kept.empty().pid for _ in range(3)] == [1, 1, 1]
    assert web.asked == [request_] * 2


def test_other_settings_start_another_server(tmp_path: Path) -> None:
    kept = Kept("broker", [], tmp_path)
    assert [kept.empty(url).pid for url in ("a=1", "a=2", "a=2")] == [1, 2, 2]


@pytest.mark.parametrize("error", [ConnectionRefusedError(), refusal(b"")])
def test_a_server_that_cannot_be_reset_is_restarted(tmp_path, web, error) -> None:
    kept, web.answer = Kept("broker", [], tmp_path), error
    assert [kept.empty().pid for _ in range(2)] == [1, 2]


def test_a_broker_with_an_advanced_clock_is_not_reused(tmp_path: Path, web: Web) -> None:
    kept = Kept("broker", [], tmp_path)
    kept.empty().advance("1h")
    assert kept.empty().pid == 2
    assert web.asked == ["POST http://h:2/admin/v2/floodgate/clock"]


def test_wait_for_fault_raises_if_the_fault_does_not_act_in_time(web: Web) -> None:
    web.answer = refusal(b"fault-1 acted 2 of 3 times within 10000 ms")
    with pytest.raises(FloodgateError, match="2 of 3 times"):
        SERVER.wait_for_fault("fault-1", hits=3)
    (asked,) = web.asked
    assert asked.endswith("/faults/fault-1/wait?hits=3&timeoutMs=10000")


def test_set_fault_and_faults_use_the_faults_endpoint(web: Web) -> None:
    web.answer = b'{"id": "fault-1"}'
    assert SERVER.set_fault({"on": ["SEND"]}) == "fault-1"
    web.answer = b'[{"id": "fault-1", "fired": 2}]'
    assert SERVER.faults() == json.loads(web.answer)
    assert web.asked == [f"{way} http://h:2/admin/v2/floodgate/faults" for way in ("POST", "GET")]


def test_a_refused_fault_raises_an_error_with_the_reason(web: Web) -> None:
    web.answer = refusal(b'{"reason":"no fault: on.0: no such command"}')
    with pytest.raises(FloodgateError, match=r"^The fault is refused: .*no such command"):
        SERVER.set_fault({"on": ["SING"]})


def test_a_server_can_run_with_another_interpreter(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho READY $2 pulsar://h:3 http://h:4\n")
    python.chmod(0o700)
    server = KeptServer("broker", [], tmp_path, str(python))
    ready = server.empty()
    server.stop()
    assert (ready.service_url, ready.web_url) == ("pulsar://h:3", "http://h:4")


def test_a_server_that_does_not_start_raises_with_the_reason(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(pytest_plugin, "MODULES", "nowhere.")
    server = KeptServer("proxy", [], tmp_path)
    with pytest.raises(
        FloodgateError, match=r"The proxy did not start: .*No module named 'nowhere'"
    ):
        server.empty()
