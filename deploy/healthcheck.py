"""Ask a server if it takes clients; exit 0 if it does, 1 with a sentence otherwise.

The image has no curl. Usage: ``python healthcheck.py http://127.0.0.1:8080/admin/v2/brokers/ready``.
Where that needs credentials, which a health check has not, ``/status.html`` is asked instead: it
needs the key statusFilePath.
"""

from __future__ import annotations

import ssl
import sys
import urllib.error
import urllib.request
from urllib.parse import urljoin

ANSWER_SECONDS = 3.0
UNAUTHORIZED = 401


def main(arguments: list[str]) -> int:
    """Check the one URL in ``arguments``; return the exit code."""
    if len(arguments) != 1 or not arguments[0].startswith(("http://", "https://")):
        sys.stderr.write("usage: healthcheck.py http://host:port/path\n")
        return 2
    try:
        ask(arguments[0])
    except urllib.error.HTTPError as error:
        if error.code != UNAUTHORIZED:
            return _failed(arguments[0], error)
        return _without_credentials(urljoin(arguments[0], "/status.html"))
    except OSError as error:
        return _failed(arguments[0], error)
    return 0


def ask(url: str) -> None:
    """Ask, whoever signed the certificate: the server is in this very container."""
    context = ssl._create_unverified_context() if url.startswith("https") else None
    with urllib.request.urlopen(url, timeout=ANSWER_SECONDS, context=context) as answer:
        answer.read()


def _without_credentials(url: str) -> int:
    try:
        ask(url)
    except OSError as error:
        remedy = "credentials are asked for: set statusFilePath to a file that is there"
        return _failed(url, f"{error} ({remedy})")
    return 0


def _failed(url: str, error: object) -> int:
    sys.stderr.write(f"{url} does not answer: {error}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
