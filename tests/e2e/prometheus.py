"""A real Prometheus, if installed, that scrapes a test's targets."""

import contextlib
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.support.processes.free_port import free_port
from tests.support.processes.server_process import REPOSITORY

ANSWER_SECONDS = 30.0
"""Limit until a first scrape shows in an answer."""


@contextlib.contextmanager
def running_prometheus(
    command: Sequence[str],
    targets: Mapping[str, str],
    folder: Path,
    configuration: str = "prometheus.yml",
) -> Iterator[str]:
    """Run Prometheus with the deployed configuration, scraping ``targets`` each second.

    Args:
        command: The arguments of docker-compose.yml; paths and port are replaced.
        targets: The web address to scrape, by the configuration's target.
        folder: For configuration, samples and log.
        configuration: A file in ``deploy``.

    Yields:
        The address of the web port, which may not answer yet.
    """
    _configure(configuration, targets, folder)
    address = f"127.0.0.1:{free_port()}"
    replacements = {
        "/etc/prometheus": str(folder),
        "=/prometheus": f"={folder}/tsdb",
        "0.0.0.0:9090": address,
    }
    arguments = [_replaced(part, replacements) for part in command]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(["prometheus", *arguments], stdout=log, stderr=log)
    try:
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(20)


def _configure(configuration: str, targets: Mapping[str, str], folder: Path) -> None:
    text = (REPOSITORY / "deploy" / configuration).read_text(encoding="utf-8")
    replacements = {name: url.removeprefix("http://") for name, url in targets.items()}
    replacements |= {"scrape_interval: 5s": "scrape_interval: 1s"}
    replacements |= {"scrape_timeout: 4s": "scrape_timeout: 1s"}
    (folder / "prometheus.yml").write_text(_replaced(text, replacements), encoding="utf-8")
    shutil.copy(REPOSITORY / "deploy" / "alerts.yml", folder)


def _replaced(text: str, replacements: Mapping[str, str]) -> str:
    for old, new in replacements.items():
        text = text.replace(old, new)
    return text


def _asked(url: str, query: str) -> dict[str, float]:
    """Return an instant query's values by job; empty before Prometheus has any."""
    text = urllib.parse.urlencode({"query": query})
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query?{text}", timeout=60) as answer:
            content: dict[str, Any] = json.load(answer)
    except (urllib.error.URLError, ConnectionError):
        return {}
    return {each["metric"]["job"]: float(each["value"][1]) for each in content["data"]["result"]}


def asked_until(url: str, query: str, expected: dict[str, float]) -> dict[str, float]:
    """Repeat a query until the expected answer; return the last answer."""
    deadline = time.monotonic() + ANSWER_SECONDS
    answer: dict[str, float] = {}
    while answer != expected and time.monotonic() < deadline:
        answer = _asked(url, query)
        # A foreign process that scrapes once a second cannot be awaited otherwise.
        time.sleep(0 if answer == expected else 0.1)
    return answer
