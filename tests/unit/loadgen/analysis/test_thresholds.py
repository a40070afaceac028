from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.analysis.measures import (
    OPERATIONS,
    SELECTORS,
    SERVERS,
    Unit,
    measures_of,
    subjects,
)
from loadgen.analysis.thresholds import OPERATORS, in_words, parse_threshold, parse_thresholds
from loadgen.errors import ExitCode, UsageError

WRITTEN = {Unit.SECONDS: "250ms", Unit.SHARE: "0.1%", Unit.COUNT: "1,000", Unit.BYTES: "1GiB"}
VALUES = {Unit.SECONDS: 0.25, Unit.SHARE: 0.001, Unit.COUNT: 1000.0, Unit.BYTES: float(1 << 30)}


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
    ],
)
def test_an_expression_is_a_subject_a_measure_and_a_value_in_its_unit(text, expected) -> None:
    found = parse_threshold(text)
    assert (
        found.subject,
        found.measure.name,
        found.percentile,
        found.operator,
        found.value,
    ) == pytest.approx(expected)


def test_requests_are_selected_by_family_group_tenant_and_namespace() -> None:
    found = parse_threshold("list{family=cpp, tenant=t1}.response.p99 < 2s")
    assert found.selectors == (("family", "cpp"), ("tenant", "t1"))
    assert parse_threshold("clients{namespace=a/b}.back.rate > 50%").selectors == (
        ("namespace", "a/b"),
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("fast", "not of the form SUBJECT.MEASURE OPERATOR VALUE as list.response.p99 < 2s"),
        ("list.response.p99 2s", "not of the form"),
        ("lst.response.p99 < 2s", "there is no subject lst; did you mean list?"),
        ("zzz.response.p99 < 2s", "there is no subject zzz; there are list, watch, "),
        ("list.respnse.p99 < 2s", "list has no respnse.p99; did you mean response.p"),
        ("list.refused < 1%", "list has no refused; did you mean refused."),
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
        ("list.response.p99 < 2", "measured in seconds: write 2s, 250ms or 1min, not 2"),
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
def test_each_mistake_is_one_sentence_that_quotes_the_expression(text: str, sentence: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_threshold(text)
    assert str(caught.value).startswith(f"threshold {text!r}: ")
    assert sentence in str(caught.value)
    assert caught.value.exit_code is ExitCode.USAGE


def test_an_endless_expression_is_quoted_in_part() -> None:
    with pytest.raises(UsageError) as caught:
        parse_threshold("x" * 10_000)
    assert len(str(caught.value)) < 300


@given(st.text(alphabet="lists{}.<>=p9%,_ \u00e9", max_size=30))
def test_no_text_does_worse_than_a_usage_error(text: str) -> None:
    with suppress(UsageError):
        parse_threshold(text)


@given(st.data())
def test_whatever_the_tables_list_can_be_written(data: st.DataObject) -> None:
    # Given any subject with any of its measures, any operator and a value in its unit
    subject = data.draw(st.sampled_from(subjects()))
    measure = data.draw(st.sampled_from(measures_of(subject)))
    sign = data.draw(st.sampled_from(list(OPERATORS)))
    selectors = () if subject in SERVERS else SELECTORS
    key = data.draw(st.sampled_from(["", *selectors]))
    chosen = f"{{{key}=x}}" if key else ""
    name = measure.name.replace("pN", "p50")
    # When
    found = parse_threshold(f"{subject}{chosen}.{name} {sign} {WRITTEN[measure.unit]}")
    # Then
    assert (found.subject, found.measure, found.operator) == (subject, measure, sign)
    assert found.value == VALUES[measure.unit]
    assert found.holds(VALUES[measure.unit]) is (sign in ("<=", ">=", "=="))


def test_a_threshold_that_is_written_twice_counts_once() -> None:
    assert len(parse_thresholds(["list.wrong.count == 0"] * 2)) == 1


@pytest.mark.parametrize(
    ("unit", "value", "words"),
    [
        (Unit.SECONDS, 0.25, "250 ms"),
        (Unit.SHARE, 0.001, "0.1 %"),
        (Unit.COUNT, 1234, "1,234"),
        (Unit.BYTES, 3 << 20, "3.0 MB"),
    ],
)
def test_a_figure_is_written_in_its_unit(unit: Unit, value: float, words: str) -> None:
    assert in_words(unit, value) == words


def test_every_kind_of_request_can_be_judged() -> None:
    assert {"list", "watch", "lookup", "subscribe", "publish", "receive"} <= set(OPERATIONS)
