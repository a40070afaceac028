"""Advice given to a real 4.2.4 as its broker.conf: its goal is met, and one step below it is not.

In a network of its own: where readers are slow, its kernel buffers are bounded as those of a
longer way are. On the plain loopback the kernel takes 4 MB of an answer at once.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from loadgen.errors import LoadgenError
from loadgen.studies.advise.advice import advise
from loadgen.studies.advise.limits import Setting, limits_of, memory_knobs
from loadgen.studies.advise.report import fragment, markdown
from server.configuration.file import parse_properties
from tests.proof.advice.clusters import CLUSTERS
from tests.proof.advice.real_storm import limits_in_force, real_cluster, storm
from tests.proof.client.real_broker import COMMAND
from tests.proof.result import ProofError, ProofOptions, ProofResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from loadgen.studies.advise.goal import Outcome
    from tests.proof.advice.clusters import ProvenCluster

REPEATS = 3
_CHECKS = "checks.json"
_OWN_NETWORK = (
    'ip link set lo up && sysctl -qw net.ipv4.tcp_wmem="4096 16384 $1" && shift && exec "$@"'
)


def prove(options: ProofOptions) -> ProofResult:
    """Prove it in a network of its own; without a real broker, or that network, say so."""
    result = ProofResult()
    if COMMAND not in os.environ:
        said = f"not given to a real Pulsar: {COMMAND} names no command that starts one"
        result.check("a real broker", True, said)
        return result
    repeats = 1 if options.quick else REPEATS
    for cluster in CLUSTERS:
        options.note(cluster.title)
        words = (cluster.name, str(options.out), str(repeats))
        _in_own_network(cluster, [sys.executable, "-m", __name__, *words])
        written = json.loads((options.out / cluster.name / _CHECKS).read_text(encoding="utf-8"))
        result.figures[cluster.name] = written["figures"]
        for each in written["checks"]:
            result.check(each["name"], each["passed"], each["sentence"])
    return result


def _in_own_network(cluster: ProvenCluster, command: list[str]) -> None:
    network = ["unshare", "--net", "--map-root-user", "sh", "-c", _OWN_NETWORK, "sh"]
    made = [*network, str(cluster.send_buffer_bytes), *command]
    ended = subprocess.run(made, check=False)
    if ended.returncode:
        raise ProofError(f"the storms in a network of their own ended with {ended.returncode}")


def prove_cluster(
    cluster: ProvenCluster, out: Path, repeats: int, note: Callable[[str], None]
) -> ProofResult:
    """Seek advice for one cluster, and give it to a real broker, each setting so many times."""
    result = ProofResult()
    most = -(-2 * repeats // 3)
    note(f"{cluster.name}: seeking advice")
    advice = advise(cluster.question())
    (out / "advice.md").write_text(markdown(advice), encoding="utf-8")
    if advice.setting is None:
        result.check(f"{cluster.name}: advice", False, "; ".join(advice.obstacles))
        return result
    setting = Setting(limits_of(parse_properties(fragment(advice, "broker"), "broker.conf")))
    met = list(_storms(cluster, setting, out / "advised", repeats, note))
    result.figures["advised"] = _figures(setting, met)
    result.check(
        f"{cluster.name}: advised",
        sum(not cluster.goal.misses(each) for each in met) >= most,
        _sentence(cluster, setting, met),
    )
    for knob in memory_knobs(setting):
        finding = next(each for each in advice.findings if each.key == knob.key)
        lower = knob.moved(setting, -1)
        name = f"{cluster.name}: {knob.key} one step below"
        if not finding.decides:
            result.check(name, True, f"{cluster.name}: {knob.key}: {finding.binds}")
            continue
        found = list(_storms(cluster, lower, out / knob.name, repeats, note))
        result.figures[knob.name] = _figures(lower, found)
        missed = sum(bool(cluster.goal.misses(each)) for each in found)
        result.check(name, missed >= most, _sentence(cluster, lower, found))
    return result


def _storms(
    cluster: ProvenCluster, setting: Setting, out: Path, repeats: int, note: Callable[[str], None]
) -> Iterator[Outcome]:
    """Yield what came of each repeat, every one with a broker of its own where that matters."""
    numbers = list(range(1, repeats + 1))
    rounds = [[each] for each in numbers] if cluster.afresh else [numbers]
    for together in rounds:
        note(f"{cluster.name}: a real broker starts: {out.name}")
        with real_cluster(cluster, setting) as addresses:
            _require_limits(setting, limits_in_force(addresses[1]))
            for repeat in together:
                outcome = storm(cluster, setting, addresses, out, str(repeat))
                note(f"{cluster.name}: {out.name} {repeat}: {cluster.goal.told(outcome)}")
                yield outcome


def _require_limits(setting: Setting, in_force: dict[str, str]) -> None:
    for key, value in setting.broker.keys().items():
        if in_force.get(key) != value:
            raise ProofError(f"the real broker has {key}={in_force.get(key)}, not {value}")


def _figures(setting: Setting, outcomes: list[Outcome]) -> dict[str, Any]:
    return {"limits": asdict(setting.broker), "outcomes": [asdict(each) for each in outcomes]}


def _sentence(cluster: ProvenCluster, setting: Setting, outcomes: list[Outcome]) -> str:
    limits = f"heap {setting.broker.heap_mb} MB, direct {setting.broker.direct_mb} MB"
    each = " | ".join(cluster.goal.told(outcome) for outcome in outcomes)
    return f"{cluster.title}; {limits}: {each}"


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def main(name: str, out: str, repeats: str) -> None:
    """Prove one cluster, in whatever network this process is."""
    folder = Path(out) / name
    folder.mkdir(parents=True, exist_ok=True)
    cluster = next(each for each in CLUSTERS if each.name == name)
    try:
        result = prove_cluster(cluster, folder, int(repeats), _say)
    except (ProofError, LoadgenError) as error:
        sys.exit(str(error))
    written = json.dumps(result.to_json(), indent=2)
    (folder / _CHECKS).write_text(written + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
