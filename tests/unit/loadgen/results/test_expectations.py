import math
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.engine.rows import Outcome
from loadgen.errors import ExitCode, UsageError
from loadgen.results.expectations import (
    MEASURES,
    OPERATIONS,
    OPERATORS,
    SELECTORS,
    SERVERS,
    parse_expectation,
    parse_expectations,
)
from loadgen.results.judging import judge
from loadgen.results.results import Results
from loadgen.results.units import Unit, value_of
from tests.support.runs.recorded_run import event, record_run, request, sample

WRITTEN = {
    Unit.SECONDS: "250ms",
    Unit.SHARE: "0.1%",
    Unit.COUNT: "1,000",
    Unit.BYTES: "1GiB",
    Unit.RATE: "5/s",
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("list.response.p99 < 2s", ("list", "response.pN", 0.99, "<", 2.0)),
        ("list.response.p99.99<=250ms", ("list", "response.pN", 0.9999, "<=", 0.25)),
        (" requests.service.max  <  1.5min ", ("requests", "service.max", None, "<", 90.0)),
        ("list.refused.rate < 0.1%", ("list", "refused.rate", None, "<", 0.001)),
        ("list.wrong.count == 0", ("list", "wrong.count", None, "==", 0.0)),
        ("clients.back.rate >= 100%", ("clients", "back.rate", None, ">=", 1.0)),
        ("clients.back.p100 < 60s", ("clients", "back.pN", 1.0, "<", 60.0)),
        ("broker.direct.used.max <= limit", ("broker", "direct.used.max", None, "<=", None)),
        ("proxy.heap.waiting.max != 0", ("proxy", "heap.waiting.max", None, "!=", 0.0)),
        ("broker.resident.max < 1GiB", ("broker", "resident.max", None, "<", float(1 << 30))),
        # In short: a bare outcome is a share.
        ("list.answered == 100%", ("list", "answered.rate", None, "==", 1.0)),
        ("list.response.p99 < 1m30s", ("list", "response.pN", 0.99, "<", 90.0)),
        ("list.response.max < 2m", ("list", "response.max", None, "<", 120.0)),
        (
            "steady.list.answered.per_second >= 50/s",
            ("list", "answered.per_second", None, ">=", 50),
        ),
        ("steady.list.response.p99 < 50ms", ("list", "response.pN", 0.99, "<", 0.05)),
    ],
)
def test_an_expectation_is_parsed_into_subject_measure_operator_and_value(text, expected) -> None:
    found = parse_expectation(text)
    assert (
        found.subject,
        found.measure.name,
        found.share,
        found.operator,
        found.value,
    ) == pytest.approx(expected)


def test_an_expectation_selects_by_family_tenant_and_namespace() -> None:
    found = parse_expectation("list{family=cpp, tenant=t1}.response.p99 < 2s")
    assert found.selectors == (("family", "cpp"), ("tenant", "t1"))
    assert parse_expectation("clients{namespace=a/b}.back.rate > 50%").selectors == (
        ("namespace", "a/b"),
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("fast", "not of the form SUBJECT.MEASURE OPERATOR VALUE as list.response.p99 < 2s"),
        ("list.response.p99 2s", "not of the form"),
        ("lst.response.p99 < 2s", "there is no subject lst; did you mean list?"),
        ("zzz.response.p99 < 2s", "there is no subject zzz; there are list, "),
        ("list.respnse.p99 < 2s", "list has no respnse.p99; did you mean response.p"),
        ("steady.lst.answered == 1%", "there is no subject steady; "),
        ("steady.list.answerd == 1%", "list has no answerd; did you mean answered"),
        ("broker.direkt.used.max < 1GB", "broker has no direkt.used.max; did you mean direct.used"),
        ("broker.response.p99 < 1s", "broker has no response.p99; "),
        ("list.response.p999 < 2s", "p999 is no percentile: write p99.9"),
        ("list.response.p9999 < 2s", "p9999 is no percentile: write p99.99"),
        ("list.response.p0 < 2s", "p0 is no percentile: write p0.1 to p100"),
        ("list.response.p101 < 2s", "p101 is no percentile"),
        ("list.response.pN < 2s", "pN stands for a percentile: write p99 or p99.9"),
        ("list.wrong.count = 0", "= is none of < <= > >= == !="),
        ("list.wrong.count === 0", "=== is none of"),
        ("list{famly=cpp}.wrong.count == 0", "selected by famly; did you mean family?"),
        ("list{}.wrong.count == 0", "{} is not of the form {family=cpp,tenant=t1}"),
        ("list{cpp}.wrong.count == 0", "{cpp} is not of the form"),
        ("list{family=}.wrong.count == 0", "{family=} is not of the form"),
        ("list{family=a,family=b}.wrong.count == 0", "family is selected twice"),
        ("broker{family=cpp}.resident.max < 1GB", "broker takes no selectors"),
        ("list.response.p99 < 2", "measured in seconds: write 2s, 250ms, 2m or 1m30s, not 2"),
        ("list.response.p99 < 30s1m", "write 2s, 250ms, 2m or 1m30s, not 30s1m"),
        ("list.answered.per_second > 9", "in requests a second: write 100/s, not 9"),
        ("list.response.p99 < 1GiB", "measured in seconds"),
        ("list.refused.rate < 0.001", "measured in share: write 0.1%, not 0.001"),
        ("list.refused.rate < 101%", "measured in share"),
        ("list.wrong.count == 0.5", "measured in count: write a whole number, not 0.5"),
        ("list.wrong.count == -1", "not -1"),
        ("broker.resident.max < much", "measured in bytes: write 1GiB, 512MB or"),
        ("broker.resident.max < limit", "resident.max has no limit of its own: write 1GiB"),
        ("list.response.p99 < limit", "response.pN has no limit of its own: write 2s"),
    ],
)
def test_an_invalid_expectation_is_refused_with_its_text_and_the_reason(
    text: str, sentence: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse_expectation(text)
    assert str(caught.value).startswith(f"expectation {text!r}: ")
    assert sentence in str(caught.value)
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_group_prefix_selects_a_group_and_an_unknown_group_is_refused() -> None:
    found = parse_expectation("steady.list.answered == 100%", ["steady", "list"])
    assert (found.subject, found.selectors) == ("list", (("group", "steady"),))
    # A group may be called like an operation.
    assert parse_expectation("list.list.answered == 1%", ["list"]).selectors == (("group", "list"),)
    assert parse_expectation("steady.clients.back == 100%", ["steady"]).subject == "clients"
    for text in ("stedy.list.answered == 1%", "list{group=stedy}.answered == 1%"):
        with pytest.raises(UsageError, match="there is no group stedy; did you mean steady"):
            parse_expectation(text, ["steady"])
    with pytest.raises(UsageError, match="group steady has no operation lst; did you mean list"):
        parse_expectation("steady.lst.answered == 1%", ["steady"])


def test_a_very_long_expectation_is_quoted_in_part() -> None:
    with pytest.raises(UsageError) as caught:
        parse_expectation("x" * 10_000)
    assert len(str(caught.value)) < 300


@given(st.text(alphabet="lists{}.<>=p9%,_ \u00e9", max_size=30))
def test_any_invalid_text_raises_only_a_usage_error(text: str) -> None:
    with suppress(UsageError):
        parse_expectation(text)


@given(st.data())
def test_every_listed_subject_measure_and_operator_can_be_parsed(data: st.DataObject) -> None:
    # Any subject with a valid measure, any operator and a value in the measure's unit
    subject = data.draw(st.sampled_from(list(MEASURES)))
    measure = data.draw(st.sampled_from(MEASURES[subject]))
    sign = data.draw(st.sampled_from(list(OPERATORS)))
    selectors = () if subject in SERVERS else SELECTORS
    key = data.draw(st.sampled_from(["", *selectors]))
    chosen = f"{{{key}=x}}" if key else ""
    name = measure.name.replace("pN", "p50")
    found = parse_expectation(f"{subject}{chosen}.{name} {sign} {WRITTEN[measure.unit]}")
    assert (found.subject, found.measure, found.operator) == (subject, measure, sign)
    assert found.value == value_of(measure.unit, WRITTEN[measure.unit])


def test_a_repeated_expectation_counts_once() -> None:
    assert len(parse_expectations(["list.wrong.count == 0"] * 2)) == 1


def test_expectations_may_judge_every_kind_of_request() -> None:
    assert {"list", "watch", "lookup", "subscribe", "publish", "deliver"} <= set(OPERATIONS)


ROWS = [
    *(request(client=n, namespace=f"t{n % 2}/n", response_seconds=n / 10) for n in range(1, 9)),
    request(client=9, group="late", outcome="refused"),
    request(client=10, group="late", outcome="timeout"),
    request(client=1, operation="lookup", namespace="t1/n", topics=None),
]
EVENTS = [
    *(event("back", client=n, namespace=f"t{n % 2}/n", value=n / 10) for n in range(1, 9)),
    event("connection-lost", client=1, namespace="t1/n"),
]
SAMPLES = [
    sample("direct.limit", 0, 100.0),
    sample("direct.used", 1, 60.0),
    sample("direct.used", 2, 1.0),
    sample("heap.high", 2, 9.0),
    sample("heap.used", 2, 3.0),
    sample("resident", 0, 1000.0),
    sample("resident", 1, 1500.0),
    sample("cpu.seconds", 0, 1.0),
    sample("cpu.seconds", 1, 3.5),
    sample("jvm.direct.limit", 0, 80.0),
    sample("jvm.direct.used", 1, 70.0),
]


@pytest.mark.parametrize(
    ("text", "holds", "value"),
    [
        ("list.response.p50 <= 500ms", True, 0.5),
        ("list.response.p80 <= 800ms", True, 0.8),
        ("list.response.p90 < 1min", False, math.inf),
        ("list{group=steady}.response.max <= 800ms", True, 0.8),
        ("list{group=steady,tenant=t0}.response.p25 == 200ms", True, 0.2),
        ("list{namespace=t1/n}.answered.count == 4", True, 4.0),
        ("list.answered >= 90%", False, 0.8),
        ("late.list.refused == 50%", True, 0.5),
        ("requests.failed.count == 1", True, 1.0),
        # Of eight answers, until the last request was done; no request was due for longer.
        ("steady.list.answered.per_second >= 80/s", True, 80.0),
        ("steady.list.refused.per_second > 0/s", False, 0.0),
        ("publish.answered.per_second < 1/s", False, None),
        ("list.topics.min == 3", True, 3.0),
        ("publish.answered == 100%", False, None),
        ("clients.back >= 100%", False, 0.8),
        ("clients.back.p80 <= 800ms", True, 0.8),
        ("clients.back.p81 <= 1min", False, math.inf),
        ("clients{tenant=t0}.back.max <= 800ms", True, 0.8),
        ("steady.clients.back.max <= 800ms", True, 0.8),
        ("clients.reconnects.max == 1", True, 1.0),
        ("clients.listings.max == 1", True, 1.0),
        ("broker.direct.used.max <= limit", True, 60.0),
        ("broker.direct.used.final == 1", True, 1.0),
        # The server's mark counts before scraped values; the server's limit is unknown.
        ("broker.heap.used.max <= 9", True, 9.0),
        ("broker.heap.used.max <= limit", False, 9.0),
        ("broker.resident.rise == 500", True, 500.0),
        ("broker.cpu.seconds < 3s", True, 2.5),
        ("broker.again.seconds < 1s", False, math.inf),
        ("broker.jvm.direct.used.max <= limit", True, 70.0),
        ("broker.unread.max < 1", False, None),
        ("proxy.unread.max < 1", False, None),
    ],
)
def test_an_expectation_is_judged_by_its_selected_rows(text, holds, value, tmp_path) -> None:
    shocks = [{"at": 0.0, "what": "restart broker"}]
    with Results.open(record_run(tmp_path, ROWS, EVENTS, SAMPLES, shocks=shocks)) as results:
        (found,) = judge([parse_expectation(text)], results)
    assert (found.holds, found.value) == (holds, pytest.approx(value))


@pytest.mark.parametrize(("hold", "rate"), [(0.0, 2.0), (5.0, 1.0), (90.0, 0.22)])
def test_a_rate_is_per_second_of_the_measure_and_hold_phases(hold, rate, tmp_path) -> None:
    # Ten answers in five seconds behind a warm-up; the last of all requests is done at 51 s.
    rows = [request(due=due) for due in (0.5, *(1 + n / 2 for n in range(10)), 50.9)]
    phases = {"phases": {"warm_up": 1.0, "measure": 5.0, "hold": hold, "drain": 60.0}}
    with Results.open(record_run(tmp_path, rows, document=phases)) as results:
        (found,) = judge([parse_expectation("steady.list.answered.per_second >= 1/s")], results)
    assert found.value == pytest.approx(rate)
    assert found.found == f"{rate:.4g}/s"


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("warm.list.failed.count == 0", False),  # All failures were in the warm-up.
        ("list{namespace=t/typo}.failed.count == 0", False),
        ("steady.list.failed.count == 0", True),
        ("steady.deliver.answered.count == 0", True),
    ],
)
def test_a_count_without_measured_requests_is_reported_as_not_measured(
    text: str, holds: bool, tmp_path: Path
) -> None:
    rows = [request(group="warm", due=1.0), request(due=3.0)]
    phases = {"phases": {"warm_up": 2.0, "measure": 2.0}}
    with Results.open(record_run(tmp_path, rows, document=phases)) as results:
        (judged,) = judge(parse_expectations([text]), results)
    assert judged.holds is holds
    assert judged.found.startswith("not measured: ") is not holds


def test_every_listed_measure_can_be_judged(tmp_path: Path) -> None:
    texts = [
        f"{subject}.{measure.name.replace('pN', 'p99')} >= {WRITTEN[measure.unit]}"
        for subject in ("list", "requests", "clients", "broker")
        for measure in MEASURES[subject]
    ]
    with Results.open(record_run(tmp_path, ROWS, EVENTS, SAMPLES)) as results:
        assert len(judge(parse_expectations(texts), results)) == len(texts)
    assert {f"list.{outcome}.rate >= 0.1%" for outcome in Outcome} <= set(texts)
