"""Import into memory, in its own process: ``python -m benchmarks.imports.client PATH``.

Prints the import's result and the process's memory as JSON.
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
    """Import and print."""
    try:
        result = run(import_topics(MemoryStore(), Path(sys.argv[1])))
    except ImportFailedError as error:
        sys.exit(f"import: {error}")
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    sys.stdout.write(json.dumps({**asdict(result), "peak_resident_bytes": peak_bytes}) + "\n")


if __name__ == "__main__":
    main()
