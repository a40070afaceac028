"""Profile ``floodgate``: non-reading peers, and healthy clients that must not notice them.

The limits are the recorded overload's. On broker and proxy, with one namespace and shared buffers
no contended memory is pinned; with private buffers, or with a namespace for each stuck peer, peers
must be closed before healthy clients are served.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from loadgen.places.server_process import ServerProcess
from tests.proof.overload.mid_topics import MID, check_recorded_sizes, write_mid_topics
from tests.proof.overload.recorded_limits import ROLES, cluster, limits, server_of
from tests.proof.overload.stuck_rows import Row, Variant, run_variant
from tests.proof.result import ProofOptions, ProofResult
from tests.proof.servers import check_logs, samples

LISTINGS = 1_000
QUICK_LISTINGS = 300
MANY = 200
CLOSED = "floodgate_closed_slow_peers_total"
TABLE = (
    "role   buffers  stuck  namespaces  not right  first answer s  closed  last closed s  "
    "longest s  over 3.5 s  p99 with / without ms"
)


def variants(*, quick: bool) -> list[Variant]:
    """Return all variants; two of each server for a quick proof."""
    found = []
    for role in ROLES:
        found += [Variant(role, "shared", stuck, False) for stuck in (1, MANY)]
        found += [Variant(role, "private", stuck, False) for stuck in (1, MANY)]
        found += [Variant(role, "shared", stuck, True) for stuck in (2, 3, MANY)]
    return [one for one in found if one.stuck != MANY and one.stuck != 2] if quick else found


def prove(options: ProofOptions) -> ProofResult:
    """Run variants in sequence, each against new servers."""
    check_recorded_sizes()
    result = ProofResult()
    rows: list[dict[str, Any]] = []
    result.figures["rows"] = rows
    lines = [TABLE]
    for variant in variants(quick=options.quick):
        options.note(variant.title)
        row, by_reason = _carried_out(options, variant)
        rows.append({"variant": asdict(variant), **asdict(row), "closed_by_reason": by_reason})
        lines.append(_line(variant, row))
        result.check(variant.title, row.holds(), f"{variant.title}: {row.sentence()}")
        check_logs(options.out / variant.name, result, f"{variant.title}: ")
    (options.out / "table.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return result


def _carried_out(options: ProofOptions, variant: Variant) -> tuple[Row, dict[str, float]]:
    topics = _topics(options.out, variant)
    keys = {
        "floodgateProfile": "floodgate",
        "floodgateResponseBuffers": variant.buffers,
        **limits(),
    }
    with cluster(options.out / variant.name, keys, [topics]) as servers:
        server = server_of(variant.role, servers)
        row = run_variant(server, variant, QUICK_LISTINGS if options.quick else LISTINGS)
        return row, _closed_by_reason(server)


def _topics(out: Path, variant: Variant) -> Path:
    """Write the namespaces of a variant, unless already written."""
    own = variant.namespaces() if variant.own_namespaces else []
    path = out / f"topics-{len(own)}.parquet"
    write_mid_topics(path, [MID, *own])
    return path


def _closed_by_reason(server: ServerProcess) -> dict[str, float]:
    return {name: value for name, value in samples(server).items() if name.startswith(CLOSED)}


def _line(variant: Variant, row: Row) -> str:
    first = "never" if row.first_answer_s is None else f"{row.first_answer_s:.3f}"
    last = "-" if row.last_closed_s is None else f"{row.last_closed_s:.1f}"
    where = "each" if variant.own_namespaces else "one"
    return (
        f"{variant.role:6} {variant.buffers:7} {variant.stuck:6}  {where:10} "
        f"{len(row.not_right):10} {first:>15} {row.closed:7} {last:>14} "
        f"{row.longest_s:10.2f} {row.slow:11}  "
        f"{row.p99_with_s * 1000:8.1f} / {row.p99_without_s * 1000:.1f}"
    )
