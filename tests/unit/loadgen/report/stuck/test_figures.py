"""The table of a run beside clients that read nothing says what an operator asks, in 80 columns."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from loadgen.report.figures import figure_rows
from loadgen.report.tables import summary_tables
from loadgen.results.silent import SilentFigures
from loadgen.stuck_peers.summary import PeerEnd
from tests.support.runs.stuck_runs import peer, report, row, stuck_summaries, summary


def printed(summaries, columns: int = 200) -> str:
    console = Console(file=io.StringIO(), width=columns, color_system=None)
    for table in summary_tables(summaries):
        console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def cells(summaries, group: str, measure: str) -> list[str]:
    rows = figure_rows(summaries)
    return list(next(r.cells for r in rows if (r.group, r.measure) == (group, measure)))


@pytest.mark.parametrize("columns", [80, 200])
def test_two_runs_fit_80_columns(columns: int) -> None:
    text = printed(list(stuck_summaries().values()), columns)
    assert max(len(line) for line in text.splitlines()) == 80
    assert "…" not in text


def test_the_peers_effect_is_counted_while_they_were_there() -> None:
    runs = list(stuck_summaries().values())
    group = "While a client reads nothing"
    assert cells(runs, group, "listings due") == ["60", "60"]
    assert cells(runs, group, "answered in that time") == ["0", "60"]
    assert cells(runs, group, "refused") == ["30", "0"]
    assert cells(runs, group, "answered later") == ["30", "0"]
    assert cells(runs, group, "time without any answer") == ["5.96 s", "3 ms"]
    assert cells(runs, group, "latency of the first answer") == ["2.05 s", "3 ms"]


def test_each_phase_has_its_latency() -> None:
    runs = list(stuck_summaries().values())
    group = "Latency of all listings, p50 and p99"
    assert cells(runs, group, "before") == ["2 ms, 2 ms", "3 ms, 3 ms"]
    assert cells(runs, group, "while a client reads nothing") == ["2.96 s, refused", "3 ms, 3 ms"]
    assert cells(runs, group, "after") == ["2 ms, 2 ms", "3 ms, 3 ms"]


def test_closed_peers_are_told_with_the_first_and_the_last_moment() -> None:
    rows = [row(0, 2.0, 2.1)]
    one = summary("one", report(rows, (peer(0, 4.05, PeerEnd.CLOSED),)))
    two = summary(
        "two", report(rows, (peer(0, 4.05, PeerEnd.CLOSED), peer(1, 4.15, PeerEnd.CLOSED)))
    )
    none = summary("none", report(rows, (peer(),)))
    assert cells([one, two, none], "Non-reading clients", "closed by the server") == [
        "1 after 3.00 s",
        "2 after 3.00 s to 3.10 s",
        "none",
    ]


def test_a_run_without_peers_says_so() -> None:
    run = summary("alone", report([row(0, 2.0, 2.1)]))
    assert cells([run], "While a client reads nothing", "time without any answer") == [
        "there were none"
    ]
    assert cells([run], "Latency of all listings, p50 and p99", "while a client reads nothing") == [
        "nothing due"
    ]
    assert cells([run], "Non-reading clients", "in all") == ["0"]


def test_beside_silent_clients_the_table_names_them() -> None:
    silent = SilentFigures(1, 0, 100, 60, 1, 0, "Nobody was harmed.")
    run = replace(summary("silent", report([row(0, 2.0, 2.1)], (peer(),))), silent=silent)
    assert cells([run], "While clients are silent", "messages due") == ["1"]
    latencies = "Latency of all messages, p50 and p99"
    assert cells([run], latencies, "before") == ["nothing due"]
    assert cells([run], latencies, "while clients are silent") == ["100 ms, 100 ms"]
    assert cells([run], "Silent clients", "closed by the server") == ["none"]


def test_who_never_gets_an_answer_again_is_told() -> None:
    run = summary("never", report([row(0, 2.0, 5.0, "refused")], (peer(),)))
    assert cells([run], "While a client reads nothing", "time without any answer") == ["none came"]
    assert cells([run], "Latency of all listings, p50 and p99", "while a client reads nothing") == [
        "both refused"
    ]


def test_storms_and_runs_beside_peers_have_tables_of_their_own() -> None:
    stuck = list(stuck_summaries().values())
    storm = replace(stuck[0], scenario="storm", stuck=None, label="A storm")
    assert len(summary_tables([storm, *stuck])) == 2
    assert "While a client reads nothing" not in printed([storm])
