"""Ctrl-C does not wait for a JVM: in any state of Spark, the process is killed."""

import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import java_gateway

from loadgen.spark import session as spark

SETTINGS = spark.SparkSettings("interrupted", cores=1)


@pytest.fixture(autouse=True)
def _ctrl_c_is_heard() -> Iterator[None]:
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


def launched(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Put a process that never ends in the JVM's place."""
    processes: list[subprocess.Popen[bytes]] = []

    def launch(*_: object) -> SimpleNamespace:
        processes.append(java_gateway.Popen(["sleep", "600"], stdin=subprocess.PIPE))
        return SimpleNamespace(proc=processes[0], shutdown=lambda: None)

    monkeypatch.setattr(spark, "launch_gateway", launch)
    return processes


def start() -> None:
    with tempfile.TemporaryFile() as log, spark._running_session(SETTINGS, Path("/tmp"), log):
        raise AssertionError("it has started")


def test_ctrl_c_while_the_jvm_is_launched_kills_the_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a launch waiting for the JVM, as Spark's does
    processes: list[subprocess.Popen[bytes]] = []

    def launch(*_: object) -> None:
        processes.append(java_gateway.Popen(["sleep", "600"]))
        signal.raise_signal(signal.SIGINT)
        processes[0].wait()
        raise Py4JNetworkError("the JVM has gone")

    monkeypatch.setattr(spark, "launch_gateway", launch)
    with pytest.raises(KeyboardInterrupt):
        start()
    assert processes[0].returncode == -signal.SIGKILL


def test_ctrl_c_while_the_session_begins_kills_the_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = launched(monkeypatch)

    def context(**_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        processes[0].wait()
        raise Py4JNetworkError("the JVM has gone")

    monkeypatch.setattr(spark, "SparkContext", context)
    with pytest.raises(KeyboardInterrupt):
        start()
    assert processes[0].returncode == -signal.SIGKILL


def test_ctrl_c_while_the_session_is_used_kills_the_jvm(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a context waiting for the JVM's end, unless forgotten; the context ends with the JVM
    # killed already, not only after the grace period
    processes = launched(monkeypatch)

    class Context:
        _jsc: Any = "alive"

        def __init__(self, **_: object) -> None:
            pass

        def stop(self) -> None:
            assert self._jsc is None
            assert processes[0].wait(60) == -signal.SIGKILL

    def session(context: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(spark, "SparkContext", Context)
    monkeypatch.setattr(spark, "SparkSession", session)
    with pytest.raises(KeyboardInterrupt):
        start()
    assert processes[0].returncode == -signal.SIGKILL
