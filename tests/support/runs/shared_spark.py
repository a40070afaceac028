"""A Spark session for all tests in a row that need one: the start of a JVM takes seconds."""

import os
import signal
from contextlib import ExitStack
from typing import Any

from loadgen.spark.session import SparkSettings, spark_session

_SHORT_LIVED = (
    ("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"),
    # Each query runs once: planning and compiling take longer than its few rows.
    ("spark.sql.codegen.wholeStage", "false"),
    ("spark.sql.codegen.factoryMode", "NO_CODEGEN"),
    ("spark.sql.adaptive.enabled", "false"),
    ("spark.ui.enabled", "false"),
)


def environment() -> dict[str, str]:
    """Return the environment without pytest's own per-test variables."""
    return {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}


class SharedSpark:
    """A session, started when a test asks for it, again if a test has ended it."""

    def __init__(self) -> None:
        self.environment = environment()
        self.interrupt_handler = signal.getsignal(signal.SIGINT)
        self._block = ExitStack()
        self._session: Any = None

    def session(self) -> Any:
        if self._session is None:
            self.environment = environment()
            self.interrupt_handler = signal.getsignal(signal.SIGINT)
            settings = SparkSettings("tests", cores=2, conf=_SHORT_LIVED)
            self._session = self._block.enter_context(spark_session(settings))
        return self._session

    def end(self, error: BaseException | None = None) -> None:
        """Leave the session's block, by ``error`` if given."""
        block, self._block, self._session = self._block, ExitStack(), None
        block.__exit__(type(error) if error else None, error, None)
