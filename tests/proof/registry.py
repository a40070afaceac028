"""All proofs: each a function ``(options) -> ProofResult`` and a line here."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass

from tests.proof.result import ProofOptions, ProofResult


@dataclass(frozen=True)
class Proof:
    """A proof, whose module is imported when it runs.

    Attributes:
        soak_seconds: Default duration of a soak.
    """

    title: str
    module: str
    function: str = "prove"
    soak_seconds: float = 300.0

    def run(self, options: ProofOptions) -> ProofResult:
        """Run the proof.

        Raises:
            ProofError: The proof could not run.
        """
        prove: Callable[[ProofOptions], ProofResult]
        prove = getattr(importlib.import_module(self.module), self.function)
        return prove(options)


PROOFS = {
    "import_1m": Proof(
        "A million topics come into memory", "tests.proof.sizes.imports", "prove_memory_import"
    ),
    "import_10m": Proof(
        "Ten million topics come in within their memory", "tests.proof.sizes.large_imports"
    ),
    "import_sqlite": Proof(
        "kill -9 loses nothing that SQLite holds",
        "tests.proof.sizes.imports",
        "prove_sqlite_import",
    ),
    "topics_100m": Proof(
        "A hundred million topics are made in under five minutes", "tests.proof.sizes.made_topics"
    ),
    "spark_standalone": Proof(
        "A cluster of Spark makes the same topics and the same storm as this machine alone",
        "tests.proof.spark.standalone",
    ),
    "spark_hosts": Proof(
        "Spark on hosts of their own starts together, ends in order, and loses no more than a host",
        "tests.proof.spark.hosts",
    ),
    "object_store": Proof(
        "Topics and runs in an object store are those of a folder, whole or not at all",
        "tests.proof.spark.object_store",
    ),
    "limiter_soak": Proof(
        "Random use of a limiter loses no permit", "tests.proof.soaks.limiter_soak"
    ),
    "churn_soak": Proof("Clients that vanish leave nothing behind", "tests.proof.soaks.churn_soak"),
    "kill_creations": Proof(
        "kill -9 of the broker loses no acknowledged topic", "tests.proof.soaks.kill_creations"
    ),
    "kill_servers": Proof(
        "kill -9 of broker and proxy under load", "tests.proof.soaks.kill_servers"
    ),
    "no_loss_messages": Proof(
        "SIGKILL between write, receipt and cursor flush loses no message",
        "tests.proof.soaks.no_loss_messages",
    ),
    "damaged_database": Proof(
        "A damaged message database gives no consumer an altered message",
        "tests.proof.stored.damaged_database",
    ),
    "full_disk": Proof(
        "A full disk loses no message, and all goes on as soon as there is room",
        "tests.proof.stored.full_disk",
    ),
    "synced_receipts": Proof(
        "With fsync each receipt leaves behind the sync of its transaction",
        "tests.proof.stored.synced_receipts",
    ),
    "freed_room": Proof(
        "Storage stays flat whatever passes through topics",
        "tests.proof.stored.freed_room",
    ),
    "ten_gigabytes": Proof(
        "Ten gigabytes of messages cost no memory, no time to start, and hold up nobody",
        "tests.proof.stored.ten_gigabytes",
    ),
    "java_flood": Proof(
        "The default broker stores what the official Java client sends to nobody",
        "tests.proof.stored.java_flood",
    ),
    "two_brokers": Proof(
        "Two brokers, of which the owner is killed and frozen, lose nothing and never both write",
        "tests.proof.soaks.two_brokers",
    ),
    "rolling_restart": Proof(
        "Brokers and proxies are restarted in turn, and no client of theirs sees an error",
        "tests.proof.restarts.rolling",
    ),
    "kills": Proof(
        "Brokers, proxies, their database and workers are killed at named points",
        "tests.proof.restarts.kills",
    ),
    "faults": Proof(
        "Faults on command beneath the official clients of Python, Java and Go",
        "tests.proof.faults.beside_clients",
    ),
    "advice_holds": Proof(
        "Advised limits hold on a real broker, and what today's do is predicted",
        "tests.proof.advice.advice_holds",
    ),
    "recorded_overload": Proof(
        "As shipped, one client that does not read starves all others",
        "tests.proof.overload.recorded_overload",
    ),
    "family_storms": Proof(
        "10,000 sockets of each family come back through the proxy",
        "tests.proof.overload.family_storms",
    ),
    "stuck_clients": Proof(
        "Clients that do not read hurt nobody else", "tests.proof.overload.stuck_clients"
    ),
    "silent_crowd": Proof(
        "A crowd that does not read holds up nobody for longer than the grace",
        "tests.proof.overload.silent_crowd",
    ),
    "honest_readers": Proof(
        "Readers that are slow but honest are not closed", "tests.proof.overload.honest_readers"
    ),
    "many_large_answers": Proof(
        "Thousands of large answers pass through little memory",
        "tests.proof.overload.many_large_answers",
    ),
    "large_namespace": Proof(
        "A million topics in one namespace hold up nobody", "tests.proof.sizes.large_namespace"
    ),
    "growth": Proof(
        "With more and more names nothing fails, and nothing holds the loop",
        "tests.proof.growth.growth",
    ),
    "many_patterns": Proof(
        "100,000 patterns leave no more behind than one cache", "tests.proof.sizes.many_patterns"
    ),
    "slow_patterns": Proof(
        "Patterns that never end cost nobody else's time", "tests.proof.sizes.slow_patterns"
    ),
    "worst_commands": Proof(
        "The worst command of each type holds up nobody", "tests.proof.sizes.worst_commands"
    ),
    "rest_calls": Proof(
        "50,000 calls of the described REST, in each profile, fail nowhere",
        "tests.proof.rest.rest_calls",
    ),
    "rest_partitions": Proof(
        "Requests about 10,000 partitions hold up nobody", "tests.proof.rest.many_partitions"
    ),
    "turns_of_messages": Proof(
        "Large subscriptions and topics hold up nobody", "tests.proof.sizes.turns_of_messages"
    ),
    "old_versions": Proof(
        "Old versions of a namespace are charged once and come whole",
        "tests.proof.overload.old_versions",
    ),
    "abuse": Proof(
        "Hostile peers hurt nobody else, and leave nothing behind", "tests.proof.abuse.abuse"
    ),
    "out_of_memory": Proof(
        "In little memory the storm kills a broker without limits, and no other",
        "tests.proof.memory.out_of_memory",
    ),
    "demo": Proof("The demo's truth", "tests.proof.demo"),
    "security_replay": Proof(
        "Every recorded role is allowed what a real broker allows it, and is refused the rest",
        "tests.proof.security_replay",
    ),
    "differential": Proof(
        "On random odd input, profile pulsar answers as a real Pulsar", "tests.proof.differential"
    ),
    "official_tls": Proof(
        "The official Java client works by TLS with certificates, directly and through the proxy",
        "tests.proof.official_tls",
    ),
    "official": Proof(
        "Official clients work unmodified, directly and through the proxy", "tests.proof.official"
    ),
    "client_suites": Proof(
        "The client's suites hold by URL, whatever the broker", "tests.proof.client.suites"
    ),
    "client_credentials": Proof(
        "Tokens and TLS of the client are what a real broker wants",
        "tests.proof.client.credentials",
    ),
    "client_patience": Proof(
        "At each step of attaching this client is as patient as the official ones",
        "tests.proof.patience.prove",
    ),
    "client_herd": Proof(
        "Consumers come back through a single place for lookups, as often as they are sent away",
        "tests.proof.consumers.herd",
    ),
    "regex_consumers": Proof(
        "A thousand regex consumers of the official client attach at once, twice",
        "tests.proof.consumers.regex_consumers",
    ),
    "client_storm": Proof(
        "Ten thousand regex consumers of this client start at once and lose their broker",
        "tests.proof.consumers.client_storm",
    ),
    "worker_pool": Proof(
        "Pools of workers are ended by SIGTERM, and each message is done once",
        "tests.proof.consumers.worker_pool",
    ),
    "shipped_scenarios": Proof(
        "Every shipped scenario runs by its name and meets what it expects",
        "tests.proof.shipped_scenarios",
    ),
    "report_pages": Proof(
        "Pages of runs are silent and legible in a real browser", "tests.proof.pages.report_pages"
    ),
    "live_page": Proof(
        "The page of connections and budgets is right and legible in a real browser",
        "tests.proof.pages.live_page",
    ),
    "coordinated_omission": Proof(
        "A stall of the server is in the response times", "tests.proof.coordinated_omission"
    ),
    "virtual_scale": Proof(
        "50,000 sockets of each family, and 100,000 clients, come back in virtual time",
        "tests.proof.virtual.virtual_scale",
    ),
    "virtual_time": Proof(
        "Virtual time comes out as real runs do", "tests.proof.virtual.virtual_time"
    ),
    "no_secrets": Proof(
        "No planted secret is in what the programs leave and show",
        "tests.proof.secrets.no_secrets",
    ),
    "wheel": Proof(
        "The wheel runs beside other people's packages of the same names", "tests.proof.wheel.wheel"
    ),
    "newcomers": Proof(
        "Strangers' programs in Python, Java and Go use the broker by its page",
        "tests.proof.newcomers.newcomers",
    ),
    "image_check": Proof(
        "Both images are built, small, and run everything without rights",
        "tests.proof.images.image_check",
    ),
    "random_properties": Proof(
        "Property tests hold with new examples", "tests.proof.random_properties"
    ),
    "fuzz": Proof(
        "Inputs that are looked for break no rule of decoder, servers, files and credentials",
        "tests.fuzz.proof",
    ),
    "marked_tests": Proof("Tests that are too long for make test", "tests.proof.marked_tests"),
}
