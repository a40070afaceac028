from __future__ import annotations

import os
import signal

import pytest

from loadgen.spark import SparkError, SparkSettings, spark_session

pytestmark = pytest.mark.spark


def test_nothing_of_spark_reaches_the_terminal_and_all_is_put_back(
    capfd: pytest.CaptureFixture[str],
) -> None:
    # Given
    before = dict(os.environ)
    handler = signal.getsignal(signal.SIGINT)
    # When
    with spark_session(SparkSettings("test", cores=1)) as started:
        assert started.sparkContext.parallelize([1, 2], 2).sum() == 3
        process = started.sparkContext._gateway.proc
    # Then
    assert capfd.readouterr() == ("", "")
    assert process.poll() is not None
    assert dict(os.environ) == before
    assert signal.getsignal(signal.SIGINT) is handler


def test_a_task_that_fails_is_one_sentence(capfd: pytest.CaptureFixture[str]) -> None:
    # Given
    settings = SparkSettings("test", cores=1)
    # When
    with pytest.raises(SparkError) as caught, spark_session(settings) as started:
        started.sparkContext.parallelize([0], 1).map(lambda zero: 1 // zero).collect()
    # Then
    assert str(caught.value).startswith("Spark failed: ZeroDivisionError: ")
