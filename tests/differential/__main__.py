"""``python -m tests.differential``: plays random exchanges to a real Pulsar and to Floodgate."""

from __future__ import annotations

import argparse
import collections
import sys
import tempfile
import time
from pathlib import Path

from tests.differential.generator import cases
from tests.differential.run import Run, new_label
from tests.differential.sides import NO_REAL_PULSAR, floodgate_side, real_side


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.differential")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=3_000)
    parser.add_argument("--proxy", action="store_true")
    parser.add_argument("--show", type=int, default=40)
    options = parser.parse_args()
    label = new_label()
    real = real_side(label, through_proxy=options.proxy)
    if real is None:
        print(NO_REAL_PULSAR)
        return 0
    started = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        floodgate_side(label, Path(folder), through_proxy=options.proxy) as ours,
    ):
        run = Run(real, ours, options.seed)
        run.prepare()
        print(f"prepared {time.monotonic() - started:.1f} s", flush=True)
        made = cases(options.seed, options.count, through_proxy=options.proxy)
        outcomes = run.play_all(
            made, lambda n: n % 500 or print(n, f"{time.monotonic() - started:.1f}", flush=True)
        )
    kept = [o for o in outcomes if not o.dropped]
    n = len(kept)
    print(
        f"{n} kept, {len(outcomes) - n} dropped; codes {sum(o.same_codes for o in kept) / n:.4f} fields {sum(o.same_fields for o in kept) / n:.4f}"
    )
    per = collections.defaultdict(lambda: [0, 0, 0])
    shown = collections.defaultdict(list)
    for o in kept:
        for i, s in enumerate(o.steps):
            per[s.kind][0] += 1
            per[s.kind][1] += s.same_codes
            per[s.kind][2] += s.same_codes and not s.found
            if s.found:
                key = (
                    s.kind,
                    "; ".join(
                        sorted(
                            {
                                f"{d.field.rpartition('.')[2]}: {d.recorded[:50]} | {d.answered[:50]}"
                                for d in s.found
                            }
                        )
                    ),
                )
                shown[key].append(str(o.case.steps[i])[:300])
    for kind, (a, b, c) in sorted(per.items()):
        print(f"{kind:30} {a:6} {100 * b / a:7.2f} {100 * c / a:7.2f}")
    for key, ex in sorted(shown.items(), key=lambda kv: -len(kv[1]))[: options.show]:
        print(len(ex), *key)
        for e in sorted(ex, key=len)[:3]:
            print("      ", e)
    return 0


sys.exit(main())
