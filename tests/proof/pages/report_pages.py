"""Pages of runs in a real browser: silent, alone, and legible on a phone, a desktop and paper."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import quote

from loadgen.report.files.derived import PAGE_NAME, write_derived
from loadgen.report.page import write_report
from loadgen.results.reading import load_run
from tests.proof.result import ProofError, ProofOptions, ProofResult
from tests.support.browser import Look, program, running_browser
from tests.support.runs.client_memory_runs import write_client_memory_run
from tests.support.runs.family_runs import write_family_run
from tests.support.runs.run_directories import RESTARTS, edit_json, write_three_runs
from tests.support.runs.stuck_runs import write_stuck_run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.browser import Seen

LOOKS = (
    Look("phone", 360),
    Look("phone-dark", 360, dark=True),
    Look("desktop", 1280),
    Look("desktop-dark", 1280, dark=True),
    Look("print", 800, media="print"),
)
_BROKEN = """<!doctype html><script>console.error("x"); fetch("http://127.0.0.1:9/")</script>
<div class="plot"><div class="x-axis"><span>one label</span><span style="margin-left: -2em">and
another</span></div></div><div style="width: 3000px">wide</div>"""


def prove(options: ProofOptions) -> ProofResult:
    """Make a page of each kind of run, look at all of them in all ways, and keep the pictures.

    Raises:
        ProofError: There is no Chromium.
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
    """Write a page of each kind, one of three runs, one of a run that went wrong; return where."""
    runs = out / "runs"
    single = {
        "families": write_family_run(runs / "families", clients=50),
        "stuck": write_stuck_run(runs / "stuck"),
        "client-memory": write_client_memory_run(runs / "client-memory"),
        "late": write_family_run(runs / "late", clients=5),
    }
    edit_json(single["families"] / "summary.json", restarts=RESTARTS)
    edit_json(single["stuck"] / "summary.json", restarts=RESTARTS[:1])
    edit_json(single["late"] / "summary.json", generator_limited=True, interrupted=True)
    for directory in single.values():
        write_derived(directory)
    storms = write_three_runs(runs, clients=200)
    edit_json(storms[0] / "summary.json", restarts=RESTARTS)
    edit_json(storms[2] / "summary.json", restarts=RESTARTS[1:])
    write_report(out / "three.html", [load_run(each) for each in storms])
    pages = {name: directory / PAGE_NAME for name, directory in single.items()}
    pages["three"] = out / "three.html"
    return {name: page.resolve().as_uri() for name, page in pages.items()}


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
    expected = {"console:", "network:", "labels:", "wide:"}
    result.check("a bad page", kinds == expected, f"a bad page is found out: {sorted(kinds)}")


def _faults(seen: Seen) -> list[str]:
    return [
        *(f"console: {error[:200]}" for error in seen.errors),
        *(f"network: {each}" for each in seen.requests if not each.startswith("data:")),
        *(f"labels: on each other, {pair}" for pair in seen.overlaps),
        *(f"labels: cut, {label}" for label in seen.cut),
        *([f"wide: {seen.too_wide} pixels too much"] if seen.too_wide > 0 else []),
    ]
