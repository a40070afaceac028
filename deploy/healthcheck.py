"""Ask a server's web port for its metrics; exit 0 when it answers, 1 with a sentence otherwise.

The image has no curl. Usage: ``python healthcheck.py http://127.0.0.1:8080/metrics/``.
"""

from __future__ import annotations

import sys
import urllib.error
import urllib.request

ANSWER_SECONDS = 3.0


def main(arguments: list[str]) -> int:
    """Check the one URL in ``arguments``; return the exit code."""
    if len(arguments) != 1 or not arguments[0].startswith("http://"):
        sys.stderr.write("usage: healthcheck.py http://host:port/metrics/\n")
        return 2
    try:
        with urllib.request.urlopen(arguments[0], timeout=ANSWER_SECONDS) as answer:
            answer.read()
    except (urllib.error.URLError, OSError) as error:
        sys.stderr.write(f"{arguments[0]} does not answer: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
