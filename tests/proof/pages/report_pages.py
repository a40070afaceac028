"""Pages of runs in a real browser: without errors or requests, and legible on phone, desktop and
paper.
"""

import asyncio
import math
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

from loadgen.report.page import PAGE_NAME, comparison_page, run_page, write_page
from loadgen.results.results import Results
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.support.browser import Look, Seen, program, running_browser
from tests.support.runs.recorded_run import TASK, event, record_run, request, sample

LOOKS = (
    Look("phone", 360),
    Look("phone-dark", 360, dark=True),
    Look("desktop", 1280),
    Look("desktop-dark", 1280, dark=True),
    Look("print", 800, media="print"),
)
_BROKEN = """<!doctype html><script>console.error("x"); fetch("http://127.0.0.1:9/")</script>
<svg class="chart" width="300" height="50"><text y="20">one label</text><text x="9" y="22">and
another</text></svg><div style="width: 3000px">wide</div>
<table style="width: 9px"><td style="overflow-wrap: anywhere">squeezed</td></table>"""


_STORMS = {"off": 1.0, "as-in-pulsar": 0.3, "floodgate": 1.0}
_LONG = "Clients of five libraries restart together, each with its retries, beside a client that"


def prove(options: ProofOptions) -> ProofResult:
    """Make a page of each kind of run, view all in all ways, and keep the pictures.

    Raises:
        ProofError: Chromium is missing.
    """
    path = program()
    if path is None:
        raise ProofError("there is no Chromium on this machine: install chromium")
    options.out.mkdir(parents=True, exist_ok=True)
    pages = _pages(options.out)
    result = ProofResult()
    asyncio.run(_look(path, pages, options, result))
    return result


def _pages(out: Path) -> dict[str, str]:
    """Write a page of a storm, of a failed storm, and of several side by side; return the files."""
    runs = out / "runs"
    runs.mkdir(exist_ok=True)
    places = [_storm(runs / name, name, share) for name, share in _STORMS.items()]
    places += [
        _storm(runs / name, f"{_LONG} reads nothing.", 0.5, run=name)
        for name in ("again-1", "again-2")
    ]
    late = {**TASK, "loop_lag_max_seconds": 3.0, "interrupted": True}
    places.append(_storm(runs / "late", f"{_LONG} is late", 0.9, tasks=[late]))
    pages = {}
    with ExitStack() as stack:
        opened = [stack.enter_context(Results.open(place)) for place in places]
        for place, run in zip(places, opened, strict=True):
            pages[place.name] = place / PAGE_NAME
            write_page(pages[place.name], run_page(run))
        for name, beside in {"three": opened[:3], "long-titles": opened[3:]}.items():
            pages[name] = out / f"{name}.html"
            write_page(pages[name], comparison_page(beside))
    return {name: page.resolve().as_uri() for name, page in pages.items()}


def _storm(directory: Path, title: str, answered: float, **said: Any) -> Path:
    """Write a run of 200 clients with a share of answers; the proxy restarts meanwhile."""
    rows, samples = [], []
    for number in range(200):
        got = number < 200 * answered
        due, took = number / 25, 0.01 * 1.03**number
        outcome = "answered" if got else "refused"
        about = {
            "run": said.get("run", "r"),
            "group": "consumers",
            "namespace": f"tenant/namespace-{number % 4}",
        }
        rows.append(
            request(
                client=number, due=due, done=due + took, outcome=outcome,
                reason="" if got else "TooManyRequests",
                response_seconds=took if got else math.inf, **about,
            )
        )  # fmt: skip
    events = [
        event("back", client=row["client"], group="consumers", seconds=row["done"], value=1.0)
        for row in rows
        if row["outcome"] == "answered"
    ]
    for process in ("broker", "proxy"):
        for step in range(60):
            held = 40e6 * math.exp(-((step / 4 - 5) ** 2) / 8)
            if process == "proxy" and 8 < step < 18:  # restarted meanwhile
                continue
            figures = {"resident": 8e7 + held, "direct.used": held, "direct.limit": 50 * 2.0**20}
            if process == "broker":
                figures |= {"jvm.heap.used": 2e8 + 9 * held, "jvm.heap.limit": 2.0**30}
                figures |= {"jvm.direct.used": 5e7 + held, "jvm.direct.limit": 2.0**27}
            samples += [sample(name, step / 4, held, process) for name, held in figures.items()]
    return record_run(
        directory, rows, events, samples,
        [{"name": "consumers", "do": "discover", "count": 200}],
        {
            "phases": {"warm_up": 1.0, "measure": 6.0, "hold": 1.0, "drain": 5.0},
            "expect": ["consumers.list.answered == 100%"],
        },
        title=title,
        shocks=[{"at": 2.0, "what": "restart proxy", "ready_seconds": 4.0}],
        **said,
    )  # fmt: skip


async def _look(
    path: str, pages: dict[str, str], options: ProofOptions, result: ProofResult
) -> None:
    async with running_browser(path) as browser:
        for name, address in pages.items():
            for look in LOOKS:
                options.note(f"{name}, {look.name}")
                seen = await browser.look(address, look)
                place = f"{name}, {look.name}"
                (options.out / f"{name}-{look.name}.png").write_bytes(seen.picture)
                faults = _faults(seen)
                result.check(place, not faults, f"{place}: {'; '.join(faults) or 'nothing amiss'}")
        broken = await browser.look(f"data:text/html,{quote(_BROKEN)}", LOOKS[0])
    kinds = {fault.partition(" ")[0] for fault in _faults(broken)}
    expected = {"console:", "network:", "labels:", "tables:", "wide:"}
    result.check("a bad page", kinds == expected, f"a bad page is found out: {sorted(kinds)}")


def _faults(seen: Seen) -> list[str]:
    return [
        *(f"console: {error[:200]}" for error in seen.errors),
        *(f"network: {each}" for each in seen.requests if not each.startswith("data:")),
        *(f"labels: on each other, {pair}" for pair in seen.overlaps),
        *(f"labels: cut, {label}" for label in seen.cut),
        *(f"tables: a broken word, {word}" for word in seen.squeezed[:1]),
        *([f"wide: {seen.too_wide} pixels too much"] if seen.too_wide > 0 else []),
    ]
