"""Listings with TLS: the broker's TLS port compared with uvloop's TLS.

A listing has 10,000 names of 100 bytes. Both servers have the same certificate, and OpenSSL's
default protocol and cipher: TLS 1.3, AES-256-GCM. The bare server writes the complete answer to
uvloop's transport. The broker encrypts above the plain transport, as its accounting requires. Both
are measured one after the other, and a ratio compares them in the same round. The client decrypts,
and may be the bottleneck: then processor time per answer is the better figure.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.certificates import write_certificates
from benchmarks.listings.corpus import answer_of, listing_names, write_text_file
from benchmarks.listings.rate import listing_rate
from benchmarks.processes import MeasuredServer, measured_server, yardstick
from benchmarks.result import BenchOptions, BenchResult, Figure
from loadgen.places.operator_files import local_broker
from loadgen.places.server_process import ServerLaunch, running_server

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

BARE, BROKER = "bare", "broker"
LABELS = {BARE: "bare server, uvloop's TLS", BROKER: "broker, TLS port"}
GOAL = 0.85
"""Goal relative to the bare server's answers per second."""
Round = dict[str, dict[str, float]]


def run(options: BenchOptions) -> BenchResult:
    """Measure both servers in each round.

    Raises:
        BenchError: A round could not be measured.
        ServerStartError: The broker did not start.
    """
    answer = answer_of(listing_names())
    with tempfile.TemporaryDirectory(prefix="floodgate-bench-") as name:
        folder = Path(name)
        authority, certificate = write_certificates(folder)
        with _contestants(folder, certificate, answer) as contestants:
            rounds = _rounds(contestants, authority, len(answer), options)
    return conclude(rounds)


@contextmanager
def _contestants(
    folder: Path, certificate: Path, answer: bytes
) -> Iterator[dict[str, MeasuredServer]]:
    """Start both servers; while one is measured, the other is idle."""
    answer_file, names_file = folder / "answer", folder / "names.txt"
    answer_file.write_bytes(answer)
    write_text_file(names_file)
    settings = {
        **local_broker(),
        "brokerServicePort": "",
        "brokerServicePortTls": "0",
        "tlsCertificateFilePath": str(certificate),
        "tlsKeyFilePath": str(certificate),
    }
    words = ("--import", str(names_file))
    launch = ServerLaunch("broker", settings, folder / "broker.log", words)
    with ExitStack() as stack:
        module = "benchmarks.listings.bare_server"
        bare = stack.enter_context(yardstick(module, str(answer_file), str(certificate)))
        broker = stack.enter_context(running_server(launch))
        yield {BARE: bare, BROKER: measured_server(broker)}


def _rounds(
    contestants: Mapping[str, MeasuredServer],
    authority: Path,
    answer_bytes: int,
    options: BenchOptions,
) -> list[Round]:
    rounds: list[Round] = []
    for number in range(options.rounds):
        found: Round = {}
        for name, server in contestants.items():
            options.note(f"round {number + 1}: {LABELS[name]}")
            tls = "--authority", str(authority)
            found[name] = listing_rate(server, answer_bytes, options.seconds, *tls)
        rounds.append(found)
    return rounds


def conclude(rounds: Sequence[Round]) -> BenchResult:
    """Return the figures of all rounds as a benchmark result."""
    figures = [
        Figure(label, "listings/s", [found[name]["per_second"] for found in rounds])
        for name, label in LABELS.items()
    ]
    rates = [found[BROKER]["per_second"] / found[BARE]["per_second"] for found in rounds]
    figures.append(Figure(f"{LABELS[BROKER]} / {BARE}", "ratio", rates, GOAL))
    figures += [
        Figure(f"CPU an answer: {label}", "ms", [found[name]["cpu_millis"] for found in rounds])
        for name, label in LABELS.items()
    ]
    cpu = [found[BARE]["cpu_millis"] / max(1e-9, found[BROKER]["cpu_millis"]) for found in rounds]
    figures.append(Figure(f"CPU an answer: {BARE} / {LABELS[BROKER]}", "ratio", cpu))
    client = max(found[name]["client_core_share"] for found in rounds for name in LABELS)
    raw: list[dict[str, Any]] = [dict(found) for found in rounds]
    return BenchResult(figures, [f"The client had {client:.2f} of a core at most."], raw)
