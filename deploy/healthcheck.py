"""Ask a server's web port for its metrics; exit 0 when it answers, 1 with a sentence otherwise.

The image has no curl. Usage: ``python healthcheck.py http://127.0.0.1:8080/metrics/``.
With authentication FLOODGATE_AUTH_PARAMS names a token, as ``file:PATH`` or ``env:NAME``.
"""

from __future__ import annotations

import os
import sys
import urllib.error
import urllib.request
from pathlib import Path

ANSWER_SECONDS = 3.0


def credentials() -> dict[str, str]:
    """Return the header with the token that is named; none without one."""
    kind, _, place = os.environ.get("FLOODGATE_AUTH_PARAMS", "").partition(":")
    if kind not in ("file", "env"):
        return {}
    token = os.environ[place] if kind == "env" else Path("/" + place.lstrip("/")).read_text()
    return {"Authorization": f"Bearer {token.strip()}"}


def main(arguments: list[str]) -> int:
    """Check the one URL in ``arguments``; return the exit code."""
    if len(arguments) != 1 or not arguments[0].startswith("http://"):
        sys.stderr.write("usage: healthcheck.py http://host:port/metrics/\n")
        return 2
    try:
        request = urllib.request.Request(arguments[0], headers=credentials())
        with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as answer:
            answer.read()
    except (urllib.error.URLError, OSError, KeyError) as error:
        sys.stderr.write(f"{arguments[0]} does not answer: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
