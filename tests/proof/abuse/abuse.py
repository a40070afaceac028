"""Three rounds of all attacks on broker and proxy while healthy clients are served."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.controlled_process import ControlledProcess, controlled_process
from benchmarks.process_memory import peak_resident_bytes, reset_peak
from loadgen.places.server_process import ServerProcess
from tests.proof.abuse.attacks import ATTACKS, Attack
from tests.proof.abuse.cluster import attacked_cluster, targets
from tests.proof.abuse.protection import HEALTHY, Protection, protection
from tests.proof.abuse.rest import Rest, at_rest, judge_rest
from tests.proof.abuse.table import Beside, write_table
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import check_logs, samples, server_address

ROUNDS = 3
ALONE_SECONDS = 4.0
AFTER_SECONDS = 0.5
"""Work this long after an attack (thousands of closing connections) counts as part of the attack.
"""
QUICK_SECONDS, QUICK_SCALE = 1.0, 0.1
GOAL_MS = 50.0
QUEUED, VANISHED = "vanish_while_queued", 10_000
_PATIENCE_SECONDS = 120.0


def prove(options: ProofOptions) -> ProofResult:
    """Run three rounds of all attacks."""
    result = ProofResult()
    protected = protection(options.out / "protection")
    with (
        attacked_cluster(options, protected) as servers,
        abusive(options, servers, protected) as proof,
    ):
        proof.warm_up()
        rests = [proof.at_rest(None)]
        for number in range(ROUNDS):
            proof.attack_once(number)
            rests.append(proof.at_rest(rests[0]))
    _judge(proof, rests, result, quick=options.quick)
    check_logs(options.out / "logs", result)
    write_table(options.out / "table.txt", proof.rows)
    return result


@contextmanager
def abusive(
    options: ProofOptions, servers: tuple[ServerProcess, ServerProcess], protected: Protection
) -> Iterator[Abuse]:
    """Start healthy clients and the attacker for a block."""
    told = [*_addresses(servers), str(protected.token_file(HEALTHY))]
    logs = options.out
    with (
        controlled_process(
            "tests.proof.abuse.healthy_peer", logs / "healthy.log", *told
        ) as healthy,
        controlled_process("tests.proof.abuse.attacker", logs / "attacker.log") as attacker,
    ):
        told_of = targets(servers, protected, QUICK_SCALE if options.quick else 1.0)
        yield Abuse(options, servers, healthy, attacker, told_of)


_KEPT = ("round", "attack", "attackers", "peak_mb", "left_the_queue")


class Abuse:
    """The rounds of attacks; mutable state: the observations so far."""

    def __init__(
        self,
        options: ProofOptions,
        servers: tuple[ServerProcess, ServerProcess],
        healthy: ControlledProcess,
        attacker: ControlledProcess,
        targets: list[dict[str, Any]],
    ) -> None:
        self._options = options
        self._servers = servers
        self._healthy = healthy
        self._attacker = attacker
        self._targets = targets
        self.rows: list[dict[str, Any]] = []

    def warm_up(self) -> None:
        """Warm up caches with all attacks, then observe healthy clients without attacks."""
        for name in ATTACKS:
            self._attack(name, ATTACKS[name], 0.3, 0.05)
        self._healthy.ask("take")
        waited = self._waited_ms()
        time.sleep(QUICK_SECONDS if self._options.quick else ALONE_SECONDS)
        self._row(0, "alone", {}, waited)

    def _waited_ms(self) -> dict[str, float]:
        """Return how long each server was ready to run without a core."""
        return {
            each.module: int(Path(f"/proc/{each.pid}/schedstat").read_text().split()[1]) / 1e6
            for each in self._servers
        }

    def attack_once(self, number: int) -> None:
        for name in ATTACKS:
            attack = ATTACKS[name]
            self._options.note(f"round {number + 1}: {attack.title}")
            for server in self._servers:
                reset_peak(server.pid)
            self._healthy.ask("take")
            waited, left = self._waited_ms(), self._cancelled()
            seconds = QUICK_SECONDS if self._options.quick else attack.seconds
            found = self._attack(name, attack, seconds)
            time.sleep(AFTER_SECONDS)
            self._row(number + 1, name, found, waited)
            self.rows[-1]["left_the_queue"] = self._cancelled() - left

    def at_rest(self, before: Rest | None) -> Rest:
        """Measure the servers while only healthy clients send and receive."""
        self._healthy.ask("go_on", yes=False)
        found = at_rest(self._servers, before)
        self._healthy.ask("go_on", yes=True)
        return found

    def _cancelled(self) -> float:
        """Namespaces whose lists fill a tenant's limit; requests for the rest stay queued."""
        found = [samples(each) for each in self._servers]
        return sum(
            value
            for each in found
            for name, value in each.items()
            if name.startswith("floodgate_topic_list_requests_total") and "cancelled" in name
        )

    def _targets_of(self, attack: Attack) -> list[dict[str, Any]]:
        return [each for each in self._targets if attack.only in ("", each["role"])]

    def _attack(
        self, name: str, attack: Attack, seconds: float, scale: float | None = None
    ) -> dict[str, Any]:
        told = self._targets_of(attack)
        if scale is not None:
            told = [{**each, "scale": scale} for each in told]
        return self._attacker.ask(
            "attack", _PATIENCE_SECONDS, name=name, lasts=seconds, targets=told
        )

    def _row(
        self, number: int, name: str, attackers: dict[str, Any], waited: dict[str, float]
    ) -> None:
        self.rows.append(
            {
                "round": number,
                "attack": name,
                "title": ATTACKS[name].title if name in ATTACKS else "no attack",
                "healthy": self._healthy.ask("take"),
                "attackers": attackers,
                "waited_ms": {role: ms - waited[role] for role, ms in self._waited_ms().items()},
                "peak_mb": {
                    each.module: round(peak_resident_bytes(each.pid) / 1e6)
                    for each in self._servers
                },
            }
        )


def _addresses(servers: Sequence[ServerProcess]) -> list[str]:
    binary = ["{}:{}".format(*server_address(each)) for each in servers]
    return [*binary, *(each.web_url for each in servers)]


def _judge(proof: Abuse, rests: list[Rest], result: ProofResult, *, quick: bool) -> None:
    beside = [
        Beside.of(proof.rows, name) for name in dict.fromkeys(r["attack"] for r in proof.rows)
    ]
    result.figures["beside"] = [asdict(each) for each in beside]
    result.figures["attackers"] = [
        {key: row[key] for key in _KEPT if key in row} for row in proof.rows
    ]
    for each in beside:
        result.check(
            f"{each.attack}: healthy clients are served",
            not each.failures and (quick or each.worst_p99_ms <= GOAL_MS),
            each.sentence(),
        )
    queued = [row for row in proof.rows if row["attack"] == QUEUED]
    left = sum(row["left_the_queue"] for row in queued)
    clients = sum(each["opened"] for row in queued for each in row["attackers"].values())
    result.check(
        "clients vanish in the queue",
        left > 0 and (quick or clients >= VANISHED),
        f"{clients:,} clients vanished, and {left:,.0f} places in the queue were left, which those "
        "who ask for the same list share",
    )
    judge_rest(rests, result, quick=quick)
