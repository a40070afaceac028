"""The release gates: each a table of rows, and each row a module with ``prove(ProofOptions)``."""

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tests.proof.result import ProofOptions, ProofResult


@dataclass(frozen=True)
class Row:
    """A proof, whose module is imported when it runs.

    Attributes:
        name: ``GATE.ROW``, or the gate's name if it has one row.
    """

    name: str
    title: str
    module: str

    def run(self, options: ProofOptions) -> ProofResult:
        """Run the proof.

        Raises:
            ProofError: The proof could not run.
        """
        result: ProofResult = importlib.import_module(f"tests.proof.{self.module}").prove(options)
        return result


GATES = {
    "demo": {
        "checks": ("The demo's truth", "demo"),
        "memory": (
            "In little memory the storm kills a broker without limits, and no other",
            "memory.out_of_memory",
        ),
    },
    "shipped_scenarios": {
        "": (
            "Every shipped scenario runs by its name and meets what it expects",
            "shipped_scenarios",
        )
    },
    "virtual_time": {
        "real": ("Virtual time comes out as real runs do", "virtual.virtual_time"),
        "scale": (
            "50,000 sockets of each family, and 100,000 clients, come back in virtual time",
            "virtual.virtual_scale",
        ),
    },
    "coordinated_omission": {
        "": ("A stall of the server is in the response times", "coordinated_omission")
    },
    "advice_holds": {
        "": (
            "Advised limits hold on a real broker, and what today's do is predicted",
            "advice.advice_holds",
        )
    },
    "differential": {
        "random": ("On random odd input, profile pulsar answers as a real Pulsar", "differential"),
        "roles": (
            "Every recorded role is allowed what a real broker allows it, and refused the rest",
            "security_replay",
        ),
    },
    "official": {
        "clients": (
            "Official clients work unmodified, directly and through the proxy",
            "official_clients",
        ),
        "tls": (
            "The official Java client works by TLS with certificates, directly and by the proxy",
            "official_tls",
        ),
        "faults": (
            "Faults on command beneath the official clients of Python, Java and Go",
            "faults.beside_clients",
        ),
        "real_faults": (
            "Faults of a proxy before a real Pulsar beneath the same clients",
            "faults.before_real_broker",
        ),
        "regex": (
            "A thousand regex consumers of the official client attach at once, twice",
            "consumers.regex",
        ),
        "suites": ("The client's suites hold by URL, whatever the broker", "client_suites"),
    },
    "spark": {
        "standalone": (
            "A cluster of Spark makes the same topics and the same storm as this machine alone",
            "spark.standalone",
        ),
        "hosts": (
            "Spark on hosts of their own starts together, ends in order, loses no more than a host",
            "spark.hosts",
        ),
        "object_store": (
            "Topics and runs in an object store are those of a folder, whole or not at all",
            "spark.object_store",
        ),
    },
    "no_loss": {
        "messages": (
            "SIGKILL between write, receipt and cursor flush loses no message",
            "soaks.no_loss_messages",
        ),
        "restarts": (
            "Brokers and proxies are restarted in turn, and no client of theirs sees an error",
            "restarts.rolling",
        ),
        "kills": (
            "Brokers, proxies, their database and workers are killed at named points",
            "restarts.kills",
        ),
    },
    "abuse": {"": ("Hostile peers hurt nobody else, and leave nothing behind", "abuse.abuse")},
    "growth": {
        "names": (
            "With more and more names nothing fails, and nothing holds the loop",
            "growth.growth",
        ),
        "messages": (
            "Ten gigabytes of messages cost no memory, no time to start, and hold up nobody",
            "growth.stored",
        ),
    },
    "soak": {
        "churn": ("Clients that vanish leave nothing behind", "soaks.churn_soak"),
        "tests": ("Long tests, and property tests with new examples, hold", "soaks.tests"),
        "fuzz": (
            "Inputs that are looked for break no rule of decoder, servers, files and credentials",
            "soaks.fuzz",
        ),
    },
    "packages": {
        "wheel": (
            "The wheels run beside other people's packages of the same names, all and in parts",
            "wheel.wheel",
        ),
        "sizes": ("Distributions are small, and imported and started quickly", "wheel.sizes"),
        "newcomers": (
            "Strangers' programs in Python, Java and Go use the broker by its page",
            "newcomers.newcomers",
        ),
        "images": (
            "Both images are built, small, and run everything without rights",
            "images.image_check",
        ),
    },
    "clients": {
        "patience": (
            "At each step of attaching this client is as patient as the official ones",
            "patience.prove",
        ),
        "herd": (
            "Consumers come back through one place for lookups, as often as they are sent away",
            "consumers.herd",
        ),
        "worker_pool": (
            "Pools of workers are ended by SIGTERM, and each message is done once",
            "consumers.worker_pool",
        ),
    },
}
"""By name, the title and the module of each row by the row's name."""


def rows_of(names: Iterable[str]) -> Iterator[Row]:
    """Yield the rows of gates and of single rows by ``GATE.ROW``, each once.

    Raises:
        KeyError: A name is unknown.
    """
    every = {gate: list(_rows(gate)) for gate in GATES}
    single = {row.name: [row] for rows in every.values() for row in rows}
    found = (row for name in names for row in {**single, **every}[name])
    yield from {row.name: row for row in found}.values()


def _rows(gate: str) -> Iterator[Row]:
    for name, (title, module) in GATES[gate].items():
        yield Row(f"{gate}.{name}" if name else gate, title, module)
