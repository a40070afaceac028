"""Record a real broker's answers to CONNECT commands with all kinds of credentials.

A broker is started for each configuration: ``python tools/record_connects.py REAL-PULSAR PORT``, on
six ports from PORT on, where REAL-PULSAR is a program that takes ``broker key=value ...`` and
prints ``READY PID ...``.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import proto.PulsarApi_pb2 as pb  # noqa: E402
from tests.support.authentication.connects import VARIANTS, cases, connect, outcome  # noqa: E402
from tests.support.authentication.credentials import properties, token  # noqa: E402

TARGET = ROOT / "tests" / "data" / "connects.jsonl"
CLIENT = "org.apache.pulsar.client.impl.auth.AuthenticationToken"


def ask(port: int, fields: dict[str, Any]) -> str:
    """Send a CONNECT command and return the broker's answer as text."""
    body = connect(fields).SerializeToString()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as peer:
        peer.sendall(struct.pack(">II", len(body) + 4, len(body)) + body)
        answered = peer.makefile("rb")
        head = answered.read(8)
        if len(head) < 8:
            return outcome(None)
        answer = pb.BaseCommand()
        answer.ParseFromString(answered.read(struct.unpack(">II", head)[1]))
        return outcome(answer)


def record(program: str, port: int, variant: str) -> list[dict[str, str]]:
    """Return the answers of a broker with one configuration to all cases."""
    with tempfile.TemporaryDirectory() as folder:
        keys = properties(Path(folder), **VARIANTS[variant])
        admin = token(sub="admin", aud="us", roles="admin").decode()
        keys |= {"brokerServicePort": str(port), "webServicePort": str(port + 1)}
        keys |= {"brokerClientAuthenticationPlugin": CLIENT}
        keys |= {"brokerClientAuthenticationParameters": f"token:{admin}"}
        settings = [f"{key}={value}" for key, value in keys.items()]
        with subprocess.Popen([program, "broker", *settings], stdout=subprocess.PIPE) as started:
            said = started.stdout.readline().decode().split() if started.stdout else []
        if said[:1] != ["READY"]:
            sys.exit(f"no broker: {said}")
        try:
            asked = cases(variant, int(time.time()))
            return [
                {"variant": variant, "case": name, "outcome": ask(port, fields)}
                for name, fields in asked.items()
            ]
        finally:
            os.kill(int(said[1]), signal.SIGKILL)
            shutil.rmtree(Path(said[3]).parent, ignore_errors=True)


def main() -> None:
    """Record the answers of a broker with each configuration, and write the data file."""
    program, port = sys.argv[1], int(sys.argv[2])
    lines = [
        line
        for number, variant in enumerate(VARIANTS)
        for line in record(program, port + 2 * number, variant)
    ]
    TARGET.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
