"""Pages: content follows from the tables, all text is escaped, no resource is fetched."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from loadgen.errors import LoadgenError
from loadgen.report import page
from loadgen.report.page import comparison_page, run_page, write_page
from loadgen.report.sections import beside, table
from loadgen.results.files import write_files
from loadgen.results.results import Results
from loadgen.results.tables import TABLES
from tests.support.runs.recorded_run import GROUP, TASK, event, record_run, request, sample

HOSTILE = "<img src=x onerror=alert(1)>"
VOID = {"meta", "input", "path", "rect", "polyline", "polygon"}


class _Balance(HTMLParser):
    """Checks that opened elements are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.seen.add(tag)
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag


def headings(text: str) -> list[str]:
    return re.findall(r"<h2>([^<]*)</h2>", text)


def made(directory: Path, **said: object) -> str:
    rows = [request(client=n, due=n / 10) for n in range(20)]
    with Results.open(record_run(directory, rows, **said)) as run:  # type: ignore[arg-type]
        return run_page(run)


def test_a_page_has_sections_only_for_recorded_data(tmp_path: Path) -> None:
    assert headings(made(tmp_path / "a")) == [
        "Requests by group and operation",
        "Requests over time",
        "Each request",
        "How long they waited",
        "Slowest requests",
        "Ask it yourself",
        "What produced it",
    ]
    samples = [sample(f, at, 1e6) for f in ("resident", "heap.used") for at in (0.0, 1.0)]
    expect = {"expect": ["steady.list.answered == 100%"]}
    back = [event("back", value=1.0)]
    fuller = headings(made(tmp_path / "b", events=back, samples=samples, document=expect))
    assert fuller[0] == "What Prometheus shows"
    assert {"The servers", "Who came back"} <= set(fuller)


def test_charts_are_at_most_390_pixels_wide(tmp_path: Path) -> None:
    text = made(tmp_path / "a")
    widths = {int(each) for each in re.findall(r'<svg [^>]* width="(\d+)"', text)}
    assert max(widths) <= 390
    assert "min-width" not in re.findall(r"\.charts svg \{[^}]*\}", text)[0]


def test_the_headline_is_the_verdict_and_failed_checks_have_their_own_section(tmp_path) -> None:
    missed = "steady.list.response.p99 < 1ms"
    expect = {"expect": ["steady.list.answered == 100%", missed]}
    text = made(tmp_path / "a", document=expect)
    assert '<h1 class="bad">✗ Expectations were missed: 1 of 6 checks failed</h1>' in text
    failed = text.partition('<section class="failed">')[2].partition("</section>")[0]
    assert re.findall(r'class="sign (good|bad)"', failed) == ["bad"]
    assert missed.replace("<", "&lt;") in failed
    assert "<summary>What holds: 5 checks</summary>" in text


def test_a_passed_run_has_no_section_of_failed_checks(tmp_path: Path) -> None:
    text = made(tmp_path / "a", document={"expect": ["steady.list.answered == 100%"]})
    assert '<h1 class="good">✓ Passed: all 5 checks hold</h1>' in text
    assert 'class="failed"' not in text
    assert "<details open><summary>What holds: 5 checks</summary>" in text


def test_page_and_readme_count_the_same_requests_and_name_the_warm_up(tmp_path) -> None:
    phases = {"phases": {"warm_up": 0.45, "measure": 5.0}}
    text = made(tmp_path / "run", document=phases)
    with Results.open(tmp_path / "run") as run:
        write_files(run)
    for told in (text, (tmp_path / "run" / "README.md").read_text()):
        assert "20 clients made 15 requests (5 more in the warm-up) in 2.0 s" in told
    assert "20 requests in 2.0 s" in made(tmp_path / "cold")


def test_an_expectation_appears_once_in_its_finding(tmp_path: Path) -> None:
    text = made(tmp_path / "run", document={"expect": ["steady.list.answered == 100%"]})
    findings = text.partition('<ul class="findings">')[2].partition("</ul>")[0]
    assert findings.count("steady.list.answered") == 1
    assert "<small>answers</small>" in findings


def test_a_table_wraps_long_texts_but_not_names() -> None:
    told = table([{"group": "a name", "text": "many words " * 5, "count": 1}])
    assert '<td class="text">a name' in told
    assert '<td class="text long">many' in told
    assert "<td>1<" in told


def test_texts_of_a_run_are_escaped_on_its_page(tmp_path: Path) -> None:
    rows = [
        request(group=HOSTILE, namespace=HOSTILE, item=HOSTILE, operation=HOSTILE),
        request(group=HOSTILE, due=1.0, outcome="refused", reason=HOSTILE),
    ]
    directory = record_run(
        tmp_path / "run",
        rows,
        [event(HOSTILE, text=HOSTILE), event("back", group=HOSTILE)],
        [sample(HOSTILE, 0.0, 1.0, HOSTILE)],
        [{**GROUP, "name": "x", "pattern": HOSTILE}],
        title=HOSTILE,
        written=HOSTILE,
        shocks=[{"at": 0.5, "what": HOSTILE, "ready_seconds": None}],
        machine={HOSTILE: HOSTILE},
    )
    with Results.open(directory) as run, Results.open(directory) as other:
        for text in (run_page(run), comparison_page([run, other], notes=[HOSTILE])):
            assert "img" not in _Balance(text).seen
            assert not _Balance(text).open


def test_a_page_needs_no_script_and_no_network(tmp_path: Path) -> None:
    text = made(tmp_path / "run")
    parsed = _Balance(text)
    assert not parsed.open
    assert not {"script", "link", "iframe", "img"} & parsed.seen
    assert "url(" not in text
    assert not re.search(r"\b(NaN|inf)\b", text)


def test_a_page_is_light_or_dark_by_choice_of_the_system_or_the_reader(tmp_path: Path) -> None:
    text = made(tmp_path / "run")
    assert "color-scheme: light dark" in text
    assert all(f'id="{each}"' in text and f"#{each}:checked" in text for each in ("light", "dark"))


def test_the_page_names_every_column_of_every_table(tmp_path: Path) -> None:
    text = made(tmp_path / "run")
    for schema in TABLES.values():
        assert ", ".join(schema.names) in text


BARE = re.compile(r"-?[\d,.]+")
WITHOUT_UNIT = {"task", "client", "name"}
NOUNS = {"requests", "clients", "answers", "topics", "events", "lists"}


def columns(text: str) -> Iterator[tuple[str, list[str]]]:
    """Return every column of every table: head, explanation, and cells."""
    for inner in re.findall(r"<table>(.*?)</table>", text):
        heads = [re.sub("<[^>]+>", "", each) for each in re.findall(r"<th[^>]*>(.*?)</th>", inner)]
        rows = [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in inner.split("<tr>")[2:]]
        yield from zip(heads, map(list, zip(*rows, strict=True)), strict=True)


def test_every_number_in_a_table_has_its_unit_in_the_cell_or_the_column_head(tmp_path) -> None:
    rows = [request(client=n, due=n / 10) for n in range(20)]
    rows += [request(client=n, outcome="refused", reason="TooManyRequests") for n in range(5)]
    events = [event("back", value=1.0), event("listed", value=2.0)]
    names = ("resident", "heap.waiting", "heap.timeouts", "connections", "cpu.seconds")
    samples = [sample(name, at, 1.0 + at) for name in names for at in (0.0, 1.0)]
    expect = {"expect": ["list.answered.count >= 1", "list.answered.per_second > 1/s"]}
    run = record_run(tmp_path / "run", rows, events, samples, document=expect)
    with Results.open(run) as one, Results.open(run) as other:
        texts = run_page(one).split("The document, as resolved")[0], comparison_page([one, other])
    bare = {
        head
        for text in texts
        for head, cells in columns(text.split("What produced it")[0])
        if any(BARE.fullmatch(cell) for cell in cells)
    }
    assert not {each for each in bare - WITHOUT_UNIT if not set(each.split()) & NOUNS}


def test_the_page_of_a_run_is_reproducible(tmp_path: Path) -> None:
    # Many requests are due at one moment and take equally long.
    rows = [request(client=n, due=n // 50 / 10, item=str(n)) for n in range(5_000)]
    record_run(tmp_path / "run", rows)
    pages = set()
    for _ in range(3):
        with Results.open(tmp_path / "run") as run:
            pages.add(run_page(run))
    assert len(pages) == 1


def test_a_percentile_among_unanswered_requests_is_shown_as_never(tmp_path: Path) -> None:
    rows = [request(), *(request(client=n, outcome="timeout") for n in range(3))]
    with Results.open(record_run(tmp_path / "run", rows)) as run:
        assert "<td>never</td>" in run_page(run)


def test_several_namespaces_are_shown_slowest_first(tmp_path: Path) -> None:
    rows = [request(namespace=f"t/n{n}", response_seconds=1.0 + n) for n in range(30)]
    with Results.open(record_run(tmp_path / "run", rows)) as run:
        told = run_page(run).partition("<h2>Namespaces, the slowest first</h2>")[2]
    assert told.index(">t/n29<") < told.index(">t/n0<")
    assert "Namespaces" not in headings(made(tmp_path / "one"))


def test_compared_runs_have_a_column_each(tmp_path: Path) -> None:
    rows = [request(client=n, due=n / 10) for n in range(20)]
    for name in ("a", "b"):
        expect = {"expect": ["steady.list.response.p99 < 1ms", "list.answered == 100%"]}
        record_run(tmp_path / name, rows, title=f"run {name}", document=expect)
    with Results.open(tmp_path / "a") as a, Results.open(tmp_path / "b") as b:
        text = comparison_page([a, b])
    assert '<th scope="col" class="text">run a</th><th scope="col" class="text">run b</th>' in text
    assert "<h1>run a beside run b</h1>" in text
    signs = re.findall(r'class="sign (good|bad)"', text)
    assert signs == ["bad", *["good"] * 5] * 2


def test_the_page_has_a_row_for_every_task(tmp_path: Path) -> None:
    tasks = [{**TASK, "task": n, "moments": 1_000 + n} for n in range(101)]
    text = made(tmp_path / "run", tasks=[*tasks, {**TASK, "task": 101, "requests": 7}])
    told = text.partition("What tasks tell of themselves")[2]
    assert "1,100" in told
    assert told.count("<tr>") == 103
    assert "not shown" not in told


def test_compared_runs_show_all_outcomes_and_the_memory_of_a_jvm(tmp_path: Path) -> None:
    rows = [request(), request(client=1, outcome="refused"), request(client=2, outcome="timeout")]
    samples = [sample(f"jvm.{kind}.used", 0.0, 5.0 * 2**20) for kind in ("heap", "direct")]
    with (
        Results.open(record_run(tmp_path / "a", rows, title="a")) as a,
        Results.open(record_run(tmp_path / "b", rows, samples=samples, title="b")) as b,
    ):
        told = {row["figure"]: (row["a"], row["b"]) for row in beside([a, b], ["a", "b"])}
    for outcome in ("answered", "refused", "timeout"):
        assert told[f"steady.list {outcome}"] == ("1 requests", "1 requests")
    assert told["broker: JVM heap, at most"] == ("-", "5.0 MB")
    assert told["broker: JVM direct memory, at most"] == ("-", "5.0 MB")
    assert "steady.list wrong" not in told


def test_a_page_that_cannot_be_written_or_is_too_large_is_refused(tmp_path, monkeypatch) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(LoadgenError, match=r"page.html cannot be written: .*; choose another"):
        write_page(tmp_path / "file" / "page.html", "")
    monkeypatch.setattr(page, "LARGEST_PAGE_BYTES", 10)
    with pytest.raises(LoadgenError, match="name fewer run directories"):
        write_page(tmp_path / "page.html", "x" * 11)
