"""Imports topics into memory, in a process of its own, and prints the result as JSON.

``python -m benchmarks.imports.client PATH`` also prints the peak memory of the process.
"""

from __future__ import annotations

import json
import resource
import sys
from dataclasses import asdict
from pathlib import Path

from broker.imports.importer import ImportFailedError, import_topics
from broker.stores.memory import MemoryStore
from server.loop import run


def main() -> None:
    """Import the topics that the command line names, and print the result."""
    try:
        result = run(import_topics(MemoryStore(), Path(sys.argv[1])))
    except ImportFailedError as error:
        sys.exit(f"import: {error}")
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    sys.stdout.write(json.dumps({**asdict(result), "peak_resident_bytes": peak_bytes}) + "\n")


if __name__ == "__main__":
    main()
