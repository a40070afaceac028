"""One list of findings makes a run's exit code, junit.xml, README.md and summary.json."""

import json
import math
import os
from errno import EMFILE
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from loadgen.commands.shown import print_page
from loadgen.results.comparing import compare, finished_run, markdown_of
from loadgen.results.files import write_files
from loadgen.results.results import Results
from loadgen.results.verdict import Finding, Level, Verdict, verdict_of
from tests.support.runs.recorded_run import GROUP, TASK, event, record_run, request, sample


def refused(count: int, of: int) -> list[dict[str, Any]]:
    return [request(client=n, outcome="refused" if n < count else "answered") for n in range(of)]


LOST_MESSAGES: dict[str, Any] = {
    "requests": [
        request(client=c, group=g, operation=o, item=i, due=d, topics=None)
        for c, g, o, i, d in (
            (1, "orders", "lookup", "topic", 0.0),
            (2, "billing", "lookup", "topic", 0.0),
            (2, "billing", "subscribe", "", 0.1),
            (1, "orders", "publish", "1", 1.0),
            (1, "orders", "publish", "2", 50.0),
            (2, "billing", "deliver", "1 2", 50.0),
        )
    ],
    "clients": [
        {"name": "orders", "do": "publish", "count": 1},
        {"name": "billing", "do": "consume", "count": 1, "of": "orders", "subscription": "s"},
    ],
}
RUNS: dict[str, tuple[Level, str, dict[str, Any]]] = {
    "a right answer": (Level.FINE, "", {}),
    "a wrong answer": (
        Level.WRONG,
        "1 answer was wrong",
        {"requests": [request(), request(outcome="wrong")]},
    ),
    "tasks that disagree": (
        Level.WRONG,
        "differ for t/n, which nobody changed",
        {"requests": [request(), request(task=1, topics_hash="g")]},
    ),
    "books with something left": (
        Level.WRONG,
        "still accounted for are 3.0 MB of broker direct memory",
        {"samples": [sample("direct.used", 0, 0), sample("direct.used", 9, 3 << 20)]},
    ),
    "books of a server that could not be asked at the end": (
        Level.FINE,
        "",
        {"samples": [sample("direct.used", 0, 0), sample("direct.used", 0.5, 3 << 20)]},
    ),
    "an admission policy that failed": (
        Level.UNRELIABLE,
        "The admission policy of the proxy has failed, so that fifo took its place and the figures "
        "are not its own: turn answers 'first \"one\"', expected",
        {
            "samples": [
                sample(f"floodgate_topic_list_policy_faults_total{{{labels}}}", 9, value, name)
                for name, labels, value in (
                    ("broker", 'type="direct"', 0),
                    (
                        "proxy",
                        """type="direct",fault="turn answers 'first \\"one\\"', expected\"""",
                        1,
                    ),
                )
            ]
        },
    ),
    "an interrupted run": (Level.INTERRUPTED, "interrupted", {"interrupted": True}),
    "an interrupted task": (
        Level.INTERRUPTED,
        "interrupted",
        {"tasks": [{**TASK, "interrupted": True}]},
    ),
    "a run that was ended early": (
        Level.MISSED,
        "list.refused == 0% could no longer be met",
        {"aborted": "list.refused == 0%", "interrupted": True},
    ),
    "a run that lost a task": (
        Level.UNRELIABLE,
        "The load was not whole: lost are tasks 1 on",
        {
            "lost": "lost are tasks 1 on 10.0.0.2, of 2: it was killed",
            "tasks": [{**TASK, "interrupted": True}],
        },
    ),
    "a run that lost a task and was ended early": (
        Level.UNRELIABLE,
        "The load was not whole",
        {"lost": "lost is task 1", "aborted": "x", "interrupted": True},
    ),
    "messages whose deliveries a lost task may have had": (
        Level.UNRELIABLE,
        "The load was not whole",
        {**LOST_MESSAGES, "lost": "lost is task 1"},
    ),
    "a server that answers nothing": (
        Level.MISSED,
        "Of 1 request of steady.list none got an answer",
        {"requests": [request(outcome="timeout")]},
    ),
    "a server that answers one of a hundred": (
        Level.MISSED,
        "Of 100 requests of steady.list only 1 got an answer",
        {"requests": refused(99, 100)},
    ),
    "a group of which nobody is answered beside many others": (
        Level.MISSED,
        "of late.list none got an answer",
        {
            "requests": [*([request()] * 50), request(group="late", outcome="disconnected")],
            "clients": [GROUP, {**GROUP, "name": "late"}],
        },
    ),
    "refusals that the document expects": (
        Level.FINE,
        "",
        {"requests": refused(9, 9), "document": {"expect": ["steady.list.refused == 100%"]}},
    ),
    "nothing for clients that read slowly": (
        Level.MISSED,
        "Of 1 request of steady.list none got an answer",
        {"requests": [request(outcome="refused")], "clients": [{**GROUP, "read": {"rate": 1e6}}]},
    ),
    "refusals beside an expectation of something else": (
        Level.MISSED,
        "Of 9 requests of steady.list none got an answer",
        {
            "requests": refused(9, 9),
            "document": {"expect": ["requests.wrong.rate == 0%", "list.topics.min >= 0"]},
        },
    ),
    "refusals while a run is held": (
        Level.MISSED,
        "steady.list.answered == 100%: 50 %",
        {
            "requests": [request(), request(due=61.0, outcome="refused")],
            "document": {
                "expect": ["steady.list.answered == 100%"],
                "phases": {"warm_up": 0, "measure": 60, "hold": 5},
            },
        },
    ),
    "books of a server that was asked when all had left": (
        Level.WRONG,
        "still accounted for are 3.0 MB of broker direct memory",
        {
            "samples": [sample("direct.used", 0, 0), sample("direct.used", 0.5, 3 << 20)],
            "servers": {"broker": {"version": "x", "settings": {}, "seen_at_the_end": True}},
        },
    ),
    "nothing for clients that do not read": (
        Level.FINE,
        "",
        {"requests": [request(outcome="timeout")], "clients": [{**GROUP, "read": {"never": True}}]},
    ),
    "a namespace without topics": (
        Level.MISSED,
        "No list of t/n by group steady names a topic",
        {"requests": [request(topics=0)]},
    ),
    "a namespace without topics, as expected": (
        Level.FINE,
        "",
        {"requests": [request(topics=0)], "document": {"expect": ["list.topics.max == 0"]}},
    ),
    "no request": (Level.MISSED, "No request was due", {"requests": []}),
    "an expectation that is missed": (
        Level.MISSED,
        "steady.list.response.p99 < 50ms: 100 ms",
        {"document": {"expect": ["steady.list.response.p99 < 50ms"]}},
    ),
    "an expectation of a server that nobody watched": (
        Level.MISSED,
        "not measured: nobody watched the broker",
        {"document": {"expect": ["broker.resident.max < 1GiB"]}},
    ),
    "clients that were never back": (
        Level.MISSED,
        "clients.back.p90 < 9s: never",
        {
            "requests": [request(), request(client=1)],
            "events": [event("back", value=1.0)],
            "document": {"expect": ["clients.back.p90 < 9s"]},
        },
    ),
    "a late generator": (
        Level.UNRELIABLE,
        "a task began 60 ms late, over the limit of 50 ms",
        {"tasks": [TASK, {**TASK, "start_error_seconds": 0.06}]},
    ),
    "a generator that could start too few": (
        Level.UNRELIABLE,
        "50 % of the requests could not be started, over the limit of 5 %",
        {"requests": [request(), request(outcome="unreachable", reason=os.strerror(EMFILE))]},
    ),
    "messages that are lost": (
        Level.WRONG,
        "1 messages of orders never came to subscription orders/s",
        LOST_MESSAGES,
    ),
}
"""By name, the level of the verdict, a sentence, and what was recorded beside a right answer."""


@pytest.mark.parametrize("name", RUNS)
def test_exit_code_junit_readme_and_summary_agree_on_the_verdict(name: str, tmp_path: Path) -> None:
    level, sentence, said = RUNS[name]
    recorded = {"requests": [request()], **said}
    with Results.open(record_run(tmp_path, **recorded)) as results:
        verdict = write_files(results)
    suites = ElementTree.parse(tmp_path / "junit.xml").getroot()
    failures = [case.attrib["message"] for case in suites.iter("failure")]
    readme = (tmp_path / "README.md").read_text()
    summary = json.loads((tmp_path / "summary.json").read_text())
    fine = level is Level.FINE
    assert (verdict.level, verdict.exit_code) == (level, level.exit_code)
    assert any(sentence in each for each in failures) is not fine
    assert int(suites.attrib["failures"]) == len(failures)
    assert readme.startswith(f"# {'✓' if fine else '✗'} scenario: {verdict.word}\n")
    assert f"Exit code of `loadgen run`: {int(verdict.exit_code)}." in readme
    assert summary["verdict"] == {
        "level": level.name.lower(),
        "word": verdict.word,
        "exit_code": int(verdict.exit_code),
    }
    assert [each["sentence"] for each in summary["findings"] if each["level"] != "fine"] == failures


@pytest.mark.parametrize("level", Level)
def test_the_worst_finding_decides_the_verdict(level: Level) -> None:
    found = [Finding(each, "it", "it is so") for each in Level if each.rank <= level.rank]
    assert Verdict(found).exit_code is level.exit_code
    assert Verdict(found[::-1]).level is level


@pytest.mark.parametrize(
    ("facts", "limited"),
    [
        ({"start_error_seconds": 0.05}, False),
        ({"client_start_error_seconds": 0.25}, False),
        ({"client_start_error_seconds": 0.26}, True),
        ({"loop_lag_p99_seconds": 0.26}, True),
        ({"loop_lag_max_seconds": 1.0}, False),
        ({"loop_lag_max_seconds": 1.01}, True),
        # Of few moments the 99th percentile is the latest.
        ({"lag_p99_seconds": 0.02, "moments": 99}, False),
        ({"lag_p99_seconds": 0.02, "moments": 100}, True),
        # In a short run the share is meaningless.
        ({"cpu_seconds": 1.9, "measured_seconds": 1.9}, False),
        ({"cpu_seconds": 2.0, "measured_seconds": 2.0}, True),
    ],
)
def test_a_run_is_unreliable_only_beyond_a_limit_of_the_generator(facts, limited, tmp_path) -> None:
    run = record_run(tmp_path, [request()], tasks=[TASK, {**TASK, **facts}])
    with Results.open(run) as results:
        assert (verdict_of(results).level is Level.UNRELIABLE) is limited


def test_result_files_are_reproducible_and_hold_only_finite_numbers(tmp_path) -> None:
    run = record_run(tmp_path, [request(), request(outcome="refused", reason="a|b\x01<c>")])
    names = ("summary.json", "summary.csv", "junit.xml", "README.md")
    written = []
    for _ in range(2):
        with Results.open(run) as results:
            write_files(results)
        written.append([(tmp_path / name).read_bytes() for name in names])
    assert written[0] == written[1]
    total = json.loads(written[0][0], parse_constant=lambda _: math.nan)["total"]
    assert total["response_seconds"]["max"] is None
    assert b"r,total.refused,1" in written[0][1]
    assert b"a\\|b" in written[0][3]


@pytest.mark.parametrize("end", ["\n", "\x0b", "\x1b", "\x85", "\u2028"])
def test_a_servers_error_text_is_a_single_escaped_line_of_readme_and_comparison(
    end: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    full = request(outcome="refused", reason=f"full{end}*or* &lt;b")
    with Results.open(record_run(tmp_path / "a", [full])) as results:
        write_files(results)
    runs = [
        finished_run(tmp_path / "a"),
        finished_run(record_run(tmp_path / "b", [full], title="b")),
    ]
    for page in ((tmp_path / "a" / "README.md").read_text(), markdown_of(compare(runs))):
        assert "full \\*or\\* &amp;lt;b |" in page
        print_page(page)
        assert "full *or* &lt;b" in capsys.readouterr().out
