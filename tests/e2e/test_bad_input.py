"""Broker and proxy processes: user errors, and inputs that must work."""

import contextlib
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import proto.PulsarApi_pb2 as pb
from client.exceptions import ServerResponseError
from client.pulsar_client import PulsarClient
from tests.support.key_files import file_of_defaults
from tests.support.processes.server_process import REPOSITORY, ended_server, running_server

pytestmark = pytest.mark.processes

ANY_PORTS = {
    "broker": ["--set", "brokerServicePort=0", "--set", "webServicePort=0"],
    "proxy": ["--set", "servicePort=0", "--set", "webServicePort=0"],
}
LOOPBACK = ["--set", "bindAddress=127.0.0.1"]
NOWHERE = ["--set", "brokerServiceURL=pulsar://127.0.0.1:1"]
ROLES = ["broker", "proxy"]


def command(role: str, *arguments: str) -> list[str]:
    """Return a process's arguments on free ports; a proxy's broker is unreachable."""
    away = NOWHERE if role == "proxy" else []
    return ["-m", role, *arguments, *ANY_PORTS[role], *LOOPBACK, *away]


@contextlib.contextmanager
def taken_port() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield str(listening.getsockname()[1])


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def read(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        text: str = answer.read().decode()
    return text


def delete(url: str) -> None:
    urllib.request.urlopen(urllib.request.Request(url, method="DELETE")).close()


BAD_CONFIGURATION: dict[str, tuple[Callable[[Path], list[str]], str]] = {
    "a file that is not there": (lambda _: ["none.conf"], "none.conf: cannot be read"),
    "a folder": (lambda folder: [str(folder)], "cannot be read (Is a directory)"),
    "not text": (
        lambda folder: [write(folder / "x.conf", b"webServicePort=\xff\xfe")],
        "x.conf, line 1: not UTF-8 text",
    ),
    "malformed": (
        lambda folder: [write(folder / "x.conf", "webServicePort=0\n<xml>\n")],
        "x.conf, line 2",
    ),
    "a wrong type": (lambda _: ["--set", "maxMessageSize=big"], "maxMessageSize"),
    "no key": (lambda _: ["--set", "novalue"], "'novalue' is not key=value"),
    "an unknown key": (
        lambda _: ["--set", "floodgateProfil=pulsar"],
        "floodgateProfil: unknown key; did you mean floodgateProfile?",
    ),
    "a wrong profile": (lambda _: ["--set", "floodgateProfile=real"], "floodgateProfile"),
    "TLS": (lambda _: ["--set", "webServicePortTls=8443"], "webServicePortTls"),
}


BOTH_ROLES = [("broker", case) for case in BAD_CONFIGURATION]
BOTH_ROLES += [("proxy", case) for case in ("a file that is not there", "malformed")]


@pytest.mark.parametrize(("role", "case"), BOTH_ROLES)
def test_an_invalid_configuration_ends_with_status_2_and_a_reason(
    role: str, case: str, tmp_path: Path
) -> None:
    arguments, sentence = BAD_CONFIGURATION[case]
    status, output, errors = ended_server(command(role, *arguments(tmp_path)), tmp_path)
    assert (status, output) == (2, "")
    assert len(errors.splitlines()) == 1
    assert sentence in errors


@pytest.mark.parametrize("role", ROLES)
def test_an_unknown_flag_ends_with_status_2_and_is_named(role: str, tmp_path: Path) -> None:
    status, output, errors = ended_server(command(role, "--fast"), tmp_path)
    assert (status, output) == (2, "")
    assert "--fast" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("web", [False, True])
def test_a_port_in_use_ends_with_status_1_and_its_key(role: str, web: bool, tmp_path: Path) -> None:
    key = "webServicePort" if web else {"broker": "brokerServicePort"}.get(role, "servicePort")
    with taken_port() as port:
        status, output, errors = ended_server([*command(role), "--set", f"{key}={port}"], tmp_path)
    assert (status, output) == (1, "")
    assert f"cannot listen on 127.0.0.1:{port}: the port is in use" in errors.splitlines()[-1]
    assert f"set {key} to another one" in errors.splitlines()[-1]
    assert "Traceback" not in errors


def test_a_bind_address_of_another_machine_ends_with_status_1_and_a_reason(tmp_path: Path) -> None:
    elsewhere = ["--set", "bindAddress=192.0.2.1"]
    status, output, errors = ended_server([*command("broker"), *elsewhere], tmp_path)
    assert (status, output) == (1, "")
    assert "is not one of this machine's" in errors.splitlines()[-1]


def test_a_proxy_without_broker_service_url_ends_and_names_the_key(tmp_path: Path) -> None:
    status, output, errors = ended_server(["-m", "proxy", *ANY_PORTS["proxy"]], tmp_path)
    assert (status, output) == (2, "")
    assert "brokerServiceURL is missing" in errors


def wrong_columns(folder: Path) -> str:
    pq.write_table(pa.table({"name": ["x"]}), folder / "x.parquet")
    return str(folder / "x.parquet")


BAD_IMPORTS: dict[str, tuple[Callable[[Path], str], str]] = {
    "wrong columns": (wrong_columns, "has no column namespace of type string"),
    "not there": (lambda folder: str(folder / "x.parquet"), "does not exist"),
    "no topics": (
        lambda folder: write(folder / "x.txt", "# mine\nhello\n"),
        "line 2: 'hello' is not a full topic name",
    ),
    "empty": (lambda folder: write(folder / "x.txt", "# mine\n\n"), "x.txt holds no topic"),
    "cut off": (lambda folder: write(folder / "x.parquet", b"PAR1abc"), "not a readable Parquet"),
}


@pytest.mark.parametrize("case", BAD_IMPORTS)
def test_a_failed_import_ends_with_status_1_and_a_reason(case: str, tmp_path: Path) -> None:
    path, sentence = BAD_IMPORTS[case]
    status, output, errors = ended_server(command("broker", "--import", path(tmp_path)), tmp_path)
    assert (status, output) == (1, "")
    _, flag, told = errors.rpartition("--import: ")
    assert flag
    assert told.startswith(str(tmp_path))
    assert sentence in told
    assert "Traceback" not in errors


async def test_skip_invalid_imports_only_the_valid_topics(tmp_path: Path) -> None:
    topics = write(tmp_path / "t.txt", "hello\npersistent://public/default/t\nworld\n")
    words = command("broker", "--import", topics, "--skip-invalid")
    with running_server(words, tmp_path / "log") as server:
        async with PulsarClient(server.service_url) as client:
            listing = await client.topics_of_namespace("public/default")
    assert listing.topics == ("persistent://public/default/t",)
    assert "2 of 3 topics are invalid" in (tmp_path / "log").read_text()
    assert "line 3: 'world' is not a full topic name" in (tmp_path / "log").read_text()


@pytest.mark.parametrize("content", [b"no database", None])
def test_a_metadata_store_that_cannot_be_opened_is_named(content: bytes | None, tmp_path) -> None:
    path = tmp_path / "topics.db"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    status, output, errors = ended_server(
        command("broker", "--set", f"metadataStoreUrl=sqlite:///{path}"), tmp_path
    )
    assert (status, output) == (1, "")
    assert f"{path} cannot be opened" in errors.splitlines()[-1]
    assert "Traceback" not in errors


@pytest.mark.parametrize("role", ROLES)
def test_a_server_starts_with_every_recorded_key_at_its_default(role: str, tmp_path: Path) -> None:
    log, file = tmp_path / "log", write(tmp_path / "all.conf", file_of_defaults(role, ""))
    with running_server(command(role, file), log) as server:
        metrics = read(f"{server.web_url}/metrics/")
    assert f"pulsar_{role}_topic_list" in metrics
    assert "Traceback" not in log.read_text()


def test_a_broker_with_a_zookeeper_store_logs_a_warning_and_starts(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running_server(command("broker", "--set", "metadataStoreUrl=zk:a:2181"), log) as server:
        assert server.service_url.startswith("pulsar://127.0.0.1:")
    assert "metadataStoreUrl=zk:a:2181: this store is not supported" in log.read_text()


async def test_a_proxy_with_an_unreachable_broker_starts_and_answers_errors(tmp_path) -> None:
    with running_server(command("proxy"), tmp_path / "log") as server:
        async with PulsarClient(server.service_url) as client:
            with pytest.raises(ServerResponseError) as caught:
                await client.topics_of_namespace("public/default")
    assert caught.value.server_error == pb.ServiceNotReady
    assert "127.0.0.1:1 cannot be reached" in caught.value.message
    assert "Traceback" not in (tmp_path / "log").read_text()


async def test_topics_of_a_metadata_store_on_disk_survive_a_restart(tmp_path: Path) -> None:
    topics = write(tmp_path / "t.txt", "persistent://public/default/kept\n")
    kept = ["--set", f"metadataStoreUrl=sqlite:///{tmp_path}/topics.db"]
    with running_server(command("broker", *kept, "--import", topics), tmp_path / "log"):
        pass
    with running_server(command("broker", *kept), tmp_path / "log") as server:
        async with PulsarClient(server.service_url) as client:
            listing = await client.topics_of_namespace("public/default")
    assert listing.topics == ("persistent://public/default/kept",)


async def test_a_restart_repeats_an_import_only_with_import_again(tmp_path) -> None:
    name = "persistent://public/default/t"
    topics = write(tmp_path / "t.txt", f"{name}\n")
    kept = ["--set", f"metadataStoreUrl=sqlite:///{tmp_path}/topics.db", "--import", topics]
    with running_server(command("broker", *kept), tmp_path / "log") as server:
        delete(f"{server.web_url}/admin/v2/persistent/public/default/t")
    found = []
    for more in ([], ["--import-again"]):
        with running_server(command("broker", *kept, *more), tmp_path / "log") as server:
            async with PulsarClient(server.service_url) as client:
                found.append((await client.topics_of_namespace("public/default")).topics)
    assert found == [(), (name,)]


@pytest.mark.parametrize("role", ROLES)
def test_ready_is_the_only_line_on_stdout_and_sigterm_ends_with_status_0(role: str) -> None:
    with subprocess.Popen(
        [sys.executable, *command(role)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=REPOSITORY,
    ) as process:
        first = process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        rest = process.stdout.read()
        status = process.wait(20)
    words = first.split()
    assert words[:2] == ["READY", role]
    assert words[2].startswith("pulsar://127.0.0.1:")
    assert words[3].startswith("http://127.0.0.1:")
    assert (rest, status) == ("", 0)
