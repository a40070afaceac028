"""Many pattern consumers in a process, each with a client and a connection.

``regex_consumers.py SERVICE_URL NAMESPACE FIRST COUNT LOG`` subscribes simultaneously to the groups
of topics from FIRST on, prints the outcome as JSON, and stays until standard input ends.
"""

import json
import re
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pulsar

OPERATION_SECONDS = 120
CONNECTION_MILLIS = 10_000
"""The client's default."""


def subscribe(service_url, namespace, group, log):
    """Return a client, its consumer and a refusal."""
    client = pulsar.Client(
        service_url,
        operation_timeout_seconds=OPERATION_SECONDS,
        connection_timeout_ms=CONNECTION_MILLIS,
        io_threads=1,
        message_listener_threads=1,
        logger=log,
    )
    pattern = re.compile(f"persistent://{namespace}/group-{group:05d}-.*")
    # The client never retries a refused topic list.
    try:
        return client, client.subscribe(pattern, "regex"), None
    except pulsar.PulsarException as error:
        return client, None, f"{type(error).__name__}: {error}"


def main(service_url, namespace, first, count, log):
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    logger = pulsar.FileLogger(pulsar.LoggerLevel.Warn, log)
    groups = range(int(first), int(first) + int(count))
    started = time.monotonic()
    with ThreadPoolExecutor(len(groups)) as threads:
        made = list(
            threads.map(lambda group: subscribe(service_url, namespace, group, logger), groups)
        )
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    said = {
        "seconds": time.monotonic() - started,
        "refused": [refusal for _, _, refusal in made if refusal],
        "threads": int(re.search(r"Threads:\s+(\d+)", status)[1]),
        "resident_bytes": int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024,
    }
    sys.stdout.write(f"{json.dumps(said)}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
