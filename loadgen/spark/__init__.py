"""Spark sessions and jobs for loadgen, and the functions of loadgen.notebooks.

from loadgen import spark

spark.topics(session, topics=1_000_000)
finished = spark.run(session, "storm")
spark.requests(session, finished.directory)
"""

from __future__ import annotations

import importlib
from typing import Any

from server.module_names import module_name

__all__ = ["events", "requests", "run", "samples", "topics"]


def __getattr__(name: str) -> Any:  # noqa: ANN401
    # Imported on demand: the functions use all of loadgen, and loadgen uses this folder.
    if name in __all__:
        return getattr(importlib.import_module(module_name("loadgen.notebooks")), name)
    raise AttributeError(name)
