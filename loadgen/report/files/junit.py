"""``junit.xml``: a test case for each check and threshold of a run, as pipelines read them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from xml.etree.ElementTree import Element, SubElement, indent, tostring

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from loadgen.results.checks import CheckResult
    from loadgen.results.verdict import Verdict

_NOT_XML = re.compile("[^\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(summary: Mapping[str, object], verdict: Verdict) -> bytes:
    """Render the checks of a run as one suite; those of every run are ``run``'s."""
    name, scenario = _text(summary["name"]), _text(summary.get("scenario", "storm"))
    found = [*verdict.checks, *verdict.thresholds]
    failed = str(sum(not check.passed for check in found))
    seconds = f"{float(str(summary.get('duration_seconds') or 0.0)):.3f}"
    counts = {"tests": str(len(found)), "failures": failed, "errors": "0", "time": seconds}
    suites = Element("testsuites", counts)
    suite = SubElement(suites, "testsuite", {"name": f"loadgen {scenario}: {name}", **counts})
    _add(suite, f"{scenario}.run", verdict.checks)
    _add(suite, f"{scenario}.thresholds", verdict.thresholds)
    indent(suites)
    rendered: bytes = tostring(suites, encoding="utf-8", xml_declaration=True)
    return rendered + b"\n"


def _add(suite: Element, group: str, checks: Iterable[CheckResult]) -> None:
    for check in checks:
        case = SubElement(suite, "testcase", {"classname": group, "name": _text(check.name)})
        if check.passed:
            SubElement(case, "system-out").text = _text(check.sentence)
        else:
            SubElement(case, "failure", {"message": _text(check.sentence)})


def _text(value: object) -> str:
    """Return a text that XML can hold: without control characters."""
    return _NOT_XML.sub(" ", str(value))
