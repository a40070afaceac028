"""Settings of Spark that a load needs, each with its reason."""

from __future__ import annotations

import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class Setting:
    """One setting of Spark."""

    key: str
    value: str
    reason: str


EVERYWHERE = (
    Setting("spark.task.maxFailures", "1", "A failed task must not offer its load a second time."),
    Setting("spark.stage.maxConsecutiveAttempts", "1", "Nor must a failed stage."),
    Setting("spark.speculation", "false", "A copy of a slow task would be more load."),
    Setting(
        "spark.dynamicAllocation.enabled",
        "false",
        "A barrier stage needs all of its slots at once, and Spark refuses it with this on.",
    ),
    Setting(
        "spark.scheduler.barrier.maxConcurrentTasksCheck.maxFailures",
        "1",
        "With too few slots a barrier stage is silent for ten minutes otherwise.",
    ),
    Setting(
        "spark.scheduler.barrier.maxConcurrentTasksCheck.interval",
        "1s",
        "How long it looks for these slots.",
    ),
)
"""Settings of every session, local or not."""

ON_A_CLUSTER = (
    Setting(
        "spark.task.cpus",
        "1",
        "A task is one process of Python with one event loop, which is one core.",
    ),
    Setting(
        "spark.executor.memoryOverhead",
        "1g",
        "Clients live in Python, outside of the JVM's memory; YARN and Kubernetes end what has "
        "more.",
    ),
    Setting(
        "spark.python.worker.reuse",
        "true",
        "A process that is kept has imported everything already.",
    ),
)
"""Settings of a cluster beside them; sessions leave it to the cluster's own files."""


def archive_settings(archive: str) -> tuple[Setting, ...]:
    """Return the settings by which executors run the Python of a packed environment."""
    return (
        Setting(
            "spark.archives",
            f"{archive}#environment",
            "What `loadgen spark package` made; each executor unpacks it as ./environment.",
        ),
        Setting(
            "spark.pyspark.python",
            "./environment/bin/python",
            "The first python3 of a node's PATH has none of the packages.",
        ),
        Setting(
            "spark.pyspark.driver.python",
            sys.executable,
            "The driver runs here, where nothing is unpacked. Leave it out with a driver that runs "
            "in the cluster.",
        ),
    )


def cluster_settings(archive: str) -> tuple[Setting, ...]:
    """Return everything that a cluster needs to run loadgen of a packed environment."""
    return (*archive_settings(archive), *EVERYWHERE, *ON_A_CLUSTER)


def as_properties(settings: tuple[Setting, ...]) -> str:
    """Return settings as a spark-defaults.conf, each with its reason above it."""
    return "\n".join(f"# {each.reason}\n{each.key} {each.value}" for each in settings) + "\n"
