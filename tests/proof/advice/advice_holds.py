"""Advice given to a real 4.2.4 as its broker.conf, for clusters of a seeded generator.

Each cluster has a start of a real broker with today's limits and three storms: one cold, and two
warm, after all topics are loaded.
Clusters with different advice have a start with the advised limits as well, and, for two storms
each, starts at virtual time's edge and at half the edge. The proof has a separate network: with
slow readers, kernel buffers are bounded as on a longer path; on the plain loopback the kernel takes
4 MB of an answer immediately. Results in the results folder are reused.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from loadgen.errors import LoadgenError
from loadgen.studies.advise.advice import advise
from loadgen.studies.advise.goal import Outcome
from loadgen.studies.advise.limits import MEMORY, Limits, Setting
from loadgen.studies.advise.report import markdown
from tests.proof.advice.clusters import ALL, TRIAL, ProvenCluster
from tests.proof.advice.real_storm import limits_in_force, real_cluster, storm
from tests.proof.real_broker import COMMAND
from tests.proof.result import ProofError, ProofOptions, ProofResult

STORMS = {"today": 3, "advised": 3, "edge": 2, "half": 2}
"""Storms of each start: today's limits, the advised limits, the edge, and half the edge."""
MOST_OF_THE_EDGE = 3
"""The largest factor of the advised limits over the smallest that a real broker bears."""
MOST_LATE = 1.5
"""Tolerance of the last client's predicted time: this factor, or a second."""
MOST_REFUSED = 0.05
"""Tolerance of the predicted refusals, as a share of all requests."""
_ADVICE = "advice.json"
_OWN_NETWORK = (
    'ip link set lo up && sysctl -qw net.ipv4.tcp_wmem="4096 16384 $1" && shift && exec "$@"'
)


def prove(options: ProofOptions) -> ProofResult:
    """Prove all clusters (quick: one); skip without a real broker."""
    result = ProofResult()
    if COMMAND not in os.environ:
        said = f"not given to a real Pulsar: {COMMAND} names no command that starts one"
        result.check("a real broker", True, said)
        return result
    right = []
    for cluster in (TRIAL,) if options.quick else ALL:
        options.note(cluster.title)
        _in_own_network(cluster, options.out)
        right.append(_judge(cluster, options.out / cluster.name, result))
    named = f"today is predicted right for {sum(right)} of {len(right)} clusters"
    result.check("today", sum(right) >= len(right) - 1, named)
    return result


def _in_own_network(cluster: ProvenCluster, out: Path) -> None:
    network = ["unshare", "--net", "--map-root-user", "sh", "-c", _OWN_NETWORK, "sh"]
    own = [sys.executable, "-m", __name__, cluster.name, str(out)]
    ended = subprocess.run([*network, str(cluster.send_buffer_bytes), *own], check=False)
    if ended.returncode:
        raise ProofError(f"the storms in a network of their own ended with {ended.returncode}")


# -- in its own network ---------------------------------------------------------------------------


def play(cluster: ProvenCluster, out: Path) -> None:
    """Compute advice for a cluster, and run the missing storms."""
    for name, limits in _limits(_advice(cluster, out)).items():
        storms = STORMS[name]
        # A storm run separately would be cold again.
        if all(_file(out, name, number).exists() for number in range(storms)):
            continue
        setting = Setting(limits)
        with real_cluster(cluster, setting) as broker:
            _require_limits(setting, limits_in_force(broker.admin_url))
            for number in range(storms):
                if number:
                    broker.settle()
                outcome = storm(cluster, setting, broker, out / name, f"{number}")
                _say(f"{cluster.name}: {name} {number}: {cluster.goal.told(outcome)}")
                _write(_file(out, name, number), asdict(outcome))


def _advice(cluster: ProvenCluster, out: Path) -> dict[str, Any]:
    """Return today's limits, the advised limits, and virtual time's result for both."""
    file = out / _ADVICE
    if not file.exists():
        _say(f"{cluster.name}: seeking advice")
        advice = advise(cluster.question())
        (out / "advice.md").write_text(markdown(advice), encoding="utf-8")
        advised, edge = (each and asdict(each.broker) for each in (advice.setting, advice.edge))
        told: dict[str, Any] = {
            "today": {
                "limits": asdict(cluster.today),
                "outcome": _told(advice.today),
                "luck": advice.shaky,
            },
            "advised": {"limits": advised, "outcome": _told(advice.outcome)},
            "edge": edge,
            "obstacles": advice.obstacles,
            "promised": advice.promised,
        }
        _write(file, told)
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def _limits(found: dict[str, Any]) -> dict[str, Limits]:
    """Return the limits of a real broker by the name of its start."""
    today, advised, edge = found["today"]["limits"], found["advised"]["limits"], found["edge"]
    starts = {"today": Limits(**today)}
    if advised and advised != today:
        starts["advised"] = Limits(**advised)
    if "advised" in starts and edge:
        starts["edge"] = Limits(**edge)
        halves = {key: edge[key] // 2 for key in MEMORY}
        if all(halves.values()):
            starts["half"] = Limits(**{**edge, **halves})
    return starts


def _told(outcome: Outcome | None) -> dict[str, Any] | None:
    return None if outcome is None else asdict(outcome)


def _require_limits(setting: Setting, in_force: dict[str, str]) -> None:
    for key, value in setting.broker.keys().items():
        if in_force.get(key) != value:
            raise ProofError(f"the real broker has {key}={in_force.get(key)}, not {value}")


def _file(out: Path, name: str, number: int) -> Path:
    return out / f"{name}-{number}.json"


def _write(file: Path, told: dict[str, Any]) -> None:
    """Write a document atomically: an interrupted proof resumes behind it."""
    half = file.with_suffix(".half")
    half.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    half.replace(file)


# -- judgement ------------------------------------------------------------------------------------


def _judge(cluster: ProvenCluster, out: Path, result: ProofResult) -> bool:
    """Check a cluster's observations; return whether virtual time matched today's limits."""
    found = json.loads((out / _ADVICE).read_text(encoding="utf-8"))
    starts = _limits(found)
    seen = {name: _seen(out, name) for name in starts}
    today = seen["today"]
    advised = seen.get("advised", today if found["advised"]["limits"] else [])
    rows = {name: list(map(asdict, storms)) for name, storms in seen.items()}
    result.figures[cluster.name] = {**found, "title": cluster.title, "seen": rows}
    told = " | ".join(cluster.goal.told(each) for each in advised) or "; ".join(found["obstacles"])
    held = not any(map(cluster.goal.misses, advised))
    promised = "" if found["promised"] else ", not sure to meet the goal"
    sentence = f"{_said(found, 'advised')}{promised}: {told}"
    result.check(f"{cluster.name}: advised", held or not found["promised"], sentence)
    if "advised" in seen and found["promised"]:
        expected = Outcome(**found["advised"]["outcome"])
        said = f"{cluster.goal.told(expected)} predicted, warm {told.partition(' | ')[2]}"
        near = all(_alike(expected, each) for each in advised[1:])
        result.check(f"{cluster.name}: time", near, said)
    if "edge" in starts:
        _judge_edge(cluster, starts, seen, result)
    predicted = Outcome(**found["today"]["outcome"])
    cold, *warm = (bool(cluster.goal.misses(each)) for each in today)
    missed = bool(cluster.goal.misses(predicted))
    # "Luck" leaves open what a cold broker does.
    right = (cold is missed or found["today"]["luck"]) and all(warm) is missed
    near = all(_alike(predicted, each) for each in today[1:]) or missed
    sentence = " | ".join(cluster.goal.told(each) for each in today)
    sentence = f"{_said(found, 'today')}: {cluster.goal.told(predicted)}; seen: {sentence}"
    result.check(f"{cluster.name}: predicted", right and near, sentence)
    return right


def _judge_edge(
    cluster: ProvenCluster,
    starts: Mapping[str, Limits],
    seen: Mapping[str, list[Outcome]],
    result: ProofResult,
) -> None:
    """Check that half the edge misses, and that the advice is close to a real broker's edge."""
    held = [name for name in seen if not any(map(cluster.goal.misses, seen[name]))]
    for name in ("half", "edge"):
        if name in seen:
            told = " | ".join(map(cluster.goal.told, seen[name]))
            limits = starts[name]
            said = f"{limits.heap_mb} and {limits.direct_mb} MB: {told}"
            result.check(f"{cluster.name}: {name}", name == "edge" or name not in held, said)
    least = min((starts[name] for name in held), key=lambda each: each.accounted_mb, default=None)
    if least is not None:
        times = starts["advised"].accounted_mb / least.accounted_mb
        said = f"{times:.1f} times the smallest that a real broker bore ({least.accounted_mb} MB)"
        result.check(f"{cluster.name}: room", times <= MOST_OF_THE_EDGE, said)


def _alike(predicted: Outcome, seen: Outcome) -> bool:
    times = sorted((predicted.slowest_seconds or 0.0, seen.slowest_seconds or 0.0))
    near = times[1] <= max(MOST_LATE * times[0], times[0] + 1)
    return near and abs(predicted.refused_share - seen.refused_share) <= MOST_REFUSED


def _seen(out: Path, name: str) -> list[Outcome]:
    files = [_file(out, name, number) for number in range(STORMS[name])]
    return [Outcome(**json.loads(each.read_text(encoding="utf-8"))) for each in files]


def _said(found: dict[str, Any], name: str) -> str:
    limits = found[name]["limits"]
    return f"{limits['heap_mb']} and {limits['direct_mb']} MB" if limits else "no limits"


def _say(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
    sys.stderr.flush()


def main(name: str, out: str) -> None:
    """Play one cluster in the current network."""
    folder = Path(out) / name
    folder.mkdir(parents=True, exist_ok=True)
    cluster = next(each for each in ALL if each.name == name)
    try:
        play(cluster, folder)
    except (ProofError, LoadgenError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
