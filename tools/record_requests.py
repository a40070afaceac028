"""Record a real broker's answers to credentials in HTTP requests and CONNECT commands.

A broker is started for each configuration: ``python tools/record_requests.py REAL-PULSAR PORT``, on
fourteen ports from PORT on. The first broker's authentication metrics are recorded too.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(ROOT / "tools"))

from record_connects import CLIENT, ask  # noqa: E402

from tests.support.authentication.requests import PATH, VARIANTS, Keys, cases, line  # noqa: E402

if TYPE_CHECKING:
    from tests.support.authentication.requests import Shown

DATA = ROOT / "tests" / "data"
_METRIC = re.compile(r"^(# (TYPE|HELP) )?pulsar_\w*(authentication|_token)", re.MULTILINE)


def status(port: int, headers: dict[str, str], path: str = PATH) -> int:
    """Return the HTTP status of the broker's answer to a GET."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def metrics(port: int) -> list[str]:
    """Return the lines about authentication on the broker's metrics page."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics/", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    return [one for one in lines if _METRIC.match(one)]


def record(program: str, port: int, variant: str) -> tuple[list[str], list[str]]:
    """Return the answers of a broker with one configuration to all cases, and then its metrics."""
    keys = Keys()
    with tempfile.TemporaryDirectory() as folder:
        settings = keys.properties(Path(folder), variant)
        own = keys.good(variant, sub="admin", aud="us").decode()
        settings |= {"brokerServicePort": str(port), "webServicePort": str(port + 1)}
        settings |= {"brokerClientAuthenticationPlugin": CLIENT}
        settings |= {"brokerClientAuthenticationParameters": f"token:{own}"}
        words = [f"{key}={value}" for key, value in settings.items()]
        with subprocess.Popen([program, "broker", *words], stdout=subprocess.PIPE) as started:
            said = started.stdout.readline().decode().split() if started.stdout else []
        if said[:1] != ["READY"]:
            sys.exit(f"no broker: {said}")
        try:
            asked = cases(keys, variant, int(time.time()))
            return [
                line(
                    variant,
                    case,
                    connect=ask(port, _fields(shown)),
                    request=status(port + 1, shown.headers),
                    named=status(port + 1, shown.named),
                )
                for case, shown in asked.items()
            ], metrics(port + 1)
        finally:
            os.kill(int(said[1]), signal.SIGKILL)
            shutil.rmtree(Path(said[3]).parent, ignore_errors=True)


def _fields(shown: Shown) -> dict[str, Any]:
    if not shown.method:
        return {}
    return {"auth_method_name": shown.method, "auth_data": shown.data}


def main() -> None:
    """Record the answers of a broker with each configuration, and write the data files."""
    program, port = sys.argv[1], int(sys.argv[2])
    found = [record(program, port + 2 * n, variant) for n, variant in enumerate(VARIANTS)]
    lines = [one for answers, _ in found for one in answers]
    (DATA / "requests.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    page = "\n".join(found[0][1]) + "\n"
    (DATA / "authentication-metrics.txt").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
