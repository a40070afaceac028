"""Starting, configuring and stopping Spark sessions, which no other module does.

All output of Spark and its workers goes to a log in a private directory; the log's end is shown
only if Spark fails. The session's threads end with the ``with`` block.

A Ctrl-C never interrupts a call to the JVM in the main thread: actions run in threads, and short
calls defer the interrupt. Spark's own signal handler, which calls the JVM from any place, is
removed.

The mutable state is the environment of the process, which is restored at the end.
"""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from unittest.mock import patch

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from loadgen.errors import LoadgenError
from loadgen.spark.environment import bridge_silenced, interrupts_deferred, uninterrupted
from loadgen.spark.java import find_java
from loadgen.spark.settings import EVERYWHERE, ONCE, by_spark_submit, is_local
from server.module_names import python_path

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOG_LINES_SHOWN = 20
_STOP_SECONDS = 10.0
# Output of the JVM and of the Python workers.
_LOG_NAME = "spark.log"
_CHATTER = re.compile(
    r" WARN |^WARNING: |log4j profile|[lL]og(ging)? ?level|^\s+at |^\s+\.\.\. \d+ more"
)


class SparkError(LoadgenError):
    """Spark did not start, or a Spark job failed."""


@dataclass(frozen=True)
class SparkSettings:
    """The settings that differ between loadgen's Spark sessions.

    Attributes:
        name: The name of the application that Spark shows.
        cores: Number of task slots of a local session.
        once: Whether failed tasks are not retried, because a load must not be offered twice.
        master: The user's own master; None means a local session, or spark-submit's master.
        conf: Further settings, with precedence over those made here.
    """

    name: str
    cores: int = os.cpu_count() or 1
    once: bool = False
    master: str | None = None
    conf: tuple[tuple[str, str], ...] = ()

    @property
    def local(self) -> bool:
        """True if Spark's tasks run on this machine, in a JVM that this process starts."""
        return is_local(self.master)


@contextmanager
def spark_session(settings: SparkSettings) -> Iterator[SparkSession]:
    """Start Spark for a ``with`` block, and stop it with its JVM at the end.

    Raises:
        UsageError: No Java was found that Spark can use.
        SparkError: Spark did not start, or failed in the block.
    """
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="loadgen-spark-")))
        log = stack.enter_context((directory / _LOG_NAME).open("wb"))
        variables = _session_environment(settings, directory)
        stack.enter_context(patch.dict(os.environ, variables))  # restores Spark's, too
        stack.enter_context(bridge_silenced())
        try:
            with _running_session(settings, directory, log) as session:
                yield session
        except SparkError:
            sys.stderr.write(log_tail(directory / _LOG_NAME))
            raise


def error_reason(text: str) -> str:
    """Return the line of a Spark error message that names the root cause.

    A Python error in a task arrives as a whole stack trace inside a Java exception's text.
    """
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[A-Za-z_][\w.]*(Error|Exception)\b: ", line)]
    python = [line for line in named if not line.startswith(("org.", "java.", "py4j."))]
    return (python or named or lines or ["no reason given"])[-1 if python else 0]


def log_tail(path: Path) -> str:
    """Return the last lines of Spark's log, without its usual warnings and stack traces."""
    lines = path.read_text(errors="replace").splitlines()
    told = [line for line in lines if not _CHATTER.search(line)]
    return "".join(f"spark: {line}\n" for line in told[-_LOG_LINES_SHOWN:])


def session_conf(settings: SparkSettings, directory: Path) -> dict[str, str]:
    """Return the Spark configuration of a session; ``settings.conf`` overrides the rest."""
    conf = {
        "spark.ui.showConsoleProgress": "false",
        **{each.key: each.value for each in (*EVERYWHERE, *(ONCE if settings.once else ()))},
    }
    if not by_spark_submit():
        conf["spark.app.name"] = settings.name
    if settings.master is not None:
        conf["spark.master"] = settings.master
    elif settings.local:
        conf["spark.master"] = f"local[{settings.cores}]"
    if settings.local:  # on the loopback, its files in the directory
        conf |= {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.memory": "1g",
            "spark.ui.enabled": "false",
            "spark.log.level": "WARN",
            "spark.sql.shuffle.partitions": str(settings.cores),
            "spark.local.dir": str(directory),
            "spark.sql.warehouse.dir": str(directory / "warehouse"),
        }
    return conf | dict(settings.conf)


def _session_environment(settings: SparkSettings, directory: Path) -> dict[str, str]:
    """Return the environment variables that Spark's launcher and its workers need."""
    # By default workers run the first python3 of the PATH, which has none of the packages.
    variables = dict.fromkeys(("PYSPARK_DRIVER_PYTHON", "PYSPARK_PYTHON"), sys.executable)
    if settings.local:
        variables |= {"SPARK_LOCAL_IP": "127.0.0.1", **python_path()}
    elif own := os.environ.get("PYSPARK_PYTHON"):
        variables["PYSPARK_PYTHON"] = own
    if not by_spark_submit():
        variables["JAVA_HOME"] = str(find_java(os.environ, directory))
    return variables


@contextmanager
def _running_session(
    settings: SparkSettings, directory: Path, log: IO[bytes]
) -> Iterator[SparkSession]:
    """Launch the JVM, whose output goes to ``log``, and yield a Spark session."""
    conf = SparkConf(loadDefaults=False)
    conf.setAll(list(session_conf(settings, directory).items()))
    # The JVM ends last: _one_sentence has to fetch a Java exception's text from a living JVM.
    with ExitStack() as ends, _one_sentence():
        with _killed_by_ctrl_c():
            gateway = launch_gateway(conf, {"stdout": log, "stderr": log})
            ends.callback(_stop_gateway, gateway)
            if gateway.proc is None:
                # spark-submit's JVM gets the terminal's Ctrl-C as well, and has to survive it.
                signals = gateway.jvm.sun.misc
                signals.Signal.handle(signals.Signal("INT"), signals.SignalHandler.SIG_IGN)
            context = SparkContext(conf=conf, gateway=gateway)
        try:
            with uninterrupted():
                session = SparkSession(context)
            yield session
        except KeyboardInterrupt:
            if gateway.proc is not None:
                context._jsc = None  # Without waiting for the JVM, which has no data to save.
                gateway.proc.kill()
            raise
        finally:
            with interrupts_deferred():
                context.stop()


@contextmanager
def _killed_by_ctrl_c() -> Iterator[None]:
    """Make a Ctrl-C kill the JVM that a ``with`` block launches.

    The launch returns the JVM's process only when the JVM is up, so the process is recorded at its
    start.

    Raises:
        KeyboardInterrupt: A Ctrl-C happened; the JVM is killed.
    """
    launched: list[subprocess.Popen[bytes]] = []
    start = java_gateway.Popen

    def noted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:  # noqa: ANN401
        launched.append(start(*arguments, **options))
        return launched[-1]

    def kill() -> None:
        for process in launched:
            process.kill()

    with patch.object(java_gateway, "Popen", noted), interrupts_deferred(kill) as interrupts:
        try:
            yield
        except Exception:
            if not interrupts:
                raise
    if interrupts:
        raise KeyboardInterrupt


@contextmanager
def _one_sentence() -> Iterator[None]:
    """Convert a ``with`` block's Spark exceptions to a SparkError with a sentence for the user."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise SparkError(f"Spark failed: {error_reason(str(error))}") from error
    except socket.gaierror as error:
        raise SparkError(
            "Spark needs the name localhost, which this machine does not know: add the line "
            f"'127.0.0.1 localhost' to /etc/hosts ({error.strerror})"
        ) from error


@interrupts_deferred()
def _stop_gateway(gateway: Any) -> None:  # noqa: ANN401
    """Stop the JVM if this process started it; spark-submit stops its own JVM."""
    process: subprocess.Popen[bytes] | None = gateway.proc
    if process is None:
        return
    gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    try:
        process.communicate(timeout=_STOP_SECONDS)  # the JVM ends when its input does
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
