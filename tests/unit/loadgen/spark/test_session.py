import socket
from pathlib import Path

import pytest

from loadgen.spark.session import (
    SparkError,
    SparkSettings,
    _one_sentence,
    error_reason,
    log_tail,
    session_conf,
)

TASK_FAILURE = """An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collect.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 failed
Traceback (most recent call last):
  File "corpus.py", line 2, in _flush
ValueError: closed
During handling of the above exception, another exception occurred:
  File "corpus.py", line 1, in write_part
OSError: [Errno 28] No space left on device

	at org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
Caused by: java.lang.Whatever: x
"""


def test_the_reason_of_a_task_failure_is_the_last_python_exception() -> None:
    assert error_reason(TASK_FAILURE) == "OSError: [Errno 28] No space left on device"


def test_the_reason_of_a_java_failure_is_the_first_java_exception() -> None:
    text = (
        "An error occurred while calling None.x.\n"
        ": java.lang.IllegalStateException: no master\n"
        "\tat java.base/x\n"
    )
    assert error_reason(text) == "java.lang.IllegalStateException: no master"


def test_the_reason_of_any_other_failure_is_its_first_line() -> None:
    assert error_reason("[JAVA_GATEWAY_EXITED] Java gateway exited.\nmore") == (
        "[JAVA_GATEWAY_EXITED] Java gateway exited."
    )


def test_the_spark_log_is_shown_without_warnings_and_stack_frames(tmp_path: Path) -> None:
    log = tmp_path / "spark.log"
    log.write_text(
        "WARNING: Using incubator modules\n26/01/01 WARN NativeCodeLoader: x\n"
        "out of room\n\tat x.y\n"
    )
    assert log_tail(log) == "spark: out of room\n"


def test_a_session_is_local_and_on_the_loopback_by_default() -> None:
    conf = session_conf(SparkSettings("x", cores=3), Path("d"))
    assert conf["spark.master"] == "local[3]"
    assert conf["spark.driver.bindAddress"] == "127.0.0.1"


def test_the_users_master_and_settings_override_the_defaults() -> None:
    settings = SparkSettings("x", master="spark://a:7077", conf=(("spark.task.maxFailures", "4"),))
    conf = session_conf(settings, Path("d"))
    assert conf["spark.master"] == "spark://a:7077"
    assert conf["spark.task.maxFailures"] == "4"
    assert "spark.driver.host" not in conf


def test_tasks_of_a_load_are_tried_once_and_other_tasks_by_sparks_default() -> None:
    conf = [session_conf(SparkSettings("x", once=once), Path("d")) for once in (True, False)]
    assert [each.get("spark.task.maxFailures") for each in conf] == ["1", None]


def test_under_spark_submit_master_name_and_web_pages_are_not_set(monkeypatch) -> None:
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    conf = session_conf(SparkSettings("x"), Path("d"))
    assert not conf.keys() & {"spark.master", "spark.app.name", "spark.ui.enabled"}


def test_a_machine_without_localhost_is_reported_with_the_remedy() -> None:
    with pytest.raises(SparkError) as caught, _one_sentence():
        raise socket.gaierror(-2, "Name or service not known")
    assert "127.0.0.1 localhost" in str(caught.value)
