"""The distributions' dependencies, sizes, times and memory, within their bounds."""

import runpy
from dataclasses import asdict

from benchmarks.processes import ROOT
from tests.proof.result import ProofOptions, ProofResult


def prove(options: ProofOptions) -> ProofResult:
    """Measure by tools/packages.py."""
    tool = runpy.run_path(str(ROOT / "tools" / "packages.py"))
    options.note("installing and measuring")
    found, result = tool["figures"](), ProofResult()
    for what, (row, values) in found.items():
        result.figures[what] = {"bounds": asdict(row), "found": values}
        over = tool["above"](row, values)
        result.check(what, not over, "; ".join(over) or f"{what}: within its bounds")
    result.table = tool["table"](found)
    return result
