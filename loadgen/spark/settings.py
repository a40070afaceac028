"""The Spark settings for a load, each with a reason, written as in spark-defaults.conf."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from loadgen.engine.control_server import LAST_SECONDS

_STARTED_BY_SPARK_SUBMIT = "PYSPARK_GATEWAY_PORT"


def by_spark_submit() -> bool:
    """Return True if spark-submit started this process, with its own JVM and master."""
    return _STARTED_BY_SPARK_SUBMIT in os.environ


def is_local(master: str | None) -> bool:
    """Return True if the tasks of a Spark master, or of the default one, run on this machine."""
    if master is None:
        return not by_spark_submit()
    return master.startswith("local") and not master.startswith("local-cluster")


@dataclass(frozen=True)
class Setting:
    """A setting of Spark, and the reason for its value."""

    key: str
    value: str
    reason: str


def _settings(text: str) -> tuple[Setting, ...]:
    """Parse settings from a text that has, for each, a comment with the reason and a line."""
    lines = text.splitlines()
    pairs = zip(lines[::2], (line.partition(" ") for line in lines[1::2]), strict=True)
    return tuple(Setting(key, value, reason[2:]) for reason, (key, _, value) in pairs)


ONCE = _settings("""\
# A failed task must not offer its load a second time.
spark.task.maxFailures 1
# Nor must a failed stage.
spark.stage.maxConsecutiveAttempts 1
""")
"""Settings of a session that drives clients; jobs that make topics may be retried."""

EVERYWHERE = _settings(f"""\
# A copy of a slow task would be more load.
spark.speculation false
# A barrier stage needs all of its slots at once, and Spark refuses it with this on.
spark.dynamicAllocation.enabled false
# How often it looks for these slots: executors register a while after the driver has begun.
spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures 30
# And how long it waits between two looks. As shipped it looks for ten minutes, silently.
spark.scheduler.barrier.maxConcurrentTasksCheck.interval 1s
# Where one task is lost Spark ends the others: they have so long to write their rows.
spark.python.task.killTimeout {LAST_SECONDS:.0f}s
""")
"""Settings of every session, local or not."""

ON_A_CLUSTER = _settings("""\
# A task is one process of Python with one event loop, which is one core.
spark.task.cpus 1
# Clients and topics (400 bytes each of the largest namespace) live in Python, outside of the JVM.
spark.executor.memoryOverhead 1g
# A process that is kept has imported everything already.
spark.python.worker.reuse true
""")
"""Further settings of a cluster; sessions leave these to the cluster's own files."""


def cluster_settings(archive: str) -> tuple[Setting, ...]:
    """Return all settings that a Spark cluster needs to run loadgen from a packed archive."""
    packed = f"""\
# What `loadgen spark package` made; each executor unpacks it as ./environment.
spark.archives {archive}#environment
# The first python3 of a node's PATH has none of the packages.
spark.pyspark.python ./environment/bin/python
# The driver runs here, where nothing is unpacked. Leave it out where it runs in the cluster.
spark.pyspark.driver.python {sys.executable}
"""
    return (*_settings(packed), *EVERYWHERE, *ON_A_CLUSTER)


def as_properties(settings: tuple[Setting, ...]) -> str:
    """Format settings as spark-defaults.conf, each below a comment with its reason."""
    return "\n".join(f"# {each.reason}\n{each.key} {each.value}" for each in settings) + "\n"
