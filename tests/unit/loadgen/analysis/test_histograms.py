from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from hypothesis import given, settings
from hypothesis import strategies as st

from loadgen.analysis.histograms import forget_histograms, histogram_of, write_histograms
from loadgen.analysis.splits import OTHER, splits_of
from loadgen.clients.records import ROWS
from loadgen.results.latency import nearest_rank

DAY = 86_400_000_000


def request(seconds: float | None, **changes: Any) -> dict[str, Any]:
    row = {
        "client": 0,
        "task": 0,
        "namespace": "t1/ns",
        "operation": "list",
        "group": "",
        "family": "cpp",
        "intended_start_seconds": 1.0,
        "started_seconds": 1.5,
        "first_byte_seconds": None,
        "finished_seconds": None if seconds is None else 1.0 + seconds,
        "outcome": "answered",
        "reason": "",
        "topics": 1,
        "bytes": 100,
        "topics_hash": "",
    }
    return row | changes


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=ROWS)


def written(directory, *rows: dict[str, Any], most: int = 10) -> None:
    write_histograms(directory, table(*rows), splits_of(table(*rows), most), 80.0)


def read(path) -> dict[str | None, Any]:
    """The histograms of a log by their tags, as another program reads them."""
    reader = HistogramLogReader(str(path), HdrHistogram(1, DAY, 3))
    found = {}
    while (histogram := reader.get_next_interval_histogram()) is not None:
        found[histogram.get_tag()] = histogram
    reader.close()
    return found


@settings(max_examples=50)
@given(st.lists(st.integers(0, DAY), min_size=1, max_size=50))
def test_counting_all_at_once_is_counting_one_by_one(micros: list[int]) -> None:
    # Given
    expected = HdrHistogram(1, DAY, 3)
    for value in micros:
        expected.record_value(value)
    # When
    found = histogram_of(np.array(micros) / 1e6)
    # Then
    assert list(found.counts) == list(expected.counts)
    assert found.get_total_count() == len(micros)
    assert (found.get_max_value(), found.get_min_value()) == (
        expected.get_max_value(),
        expected.get_min_value(),
    )


def test_other_programs_read_the_log_to_the_last_percentile(tmp_path) -> None:
    # Given 20,000 answers, one of them very slow
    seconds = sorted(np.random.default_rng(1).lognormal(-4, 1, 20_000).tolist())
    seconds[-1] = 70.0
    rows = [request(each, family="cpp" if i % 2 else "go") for i, each in enumerate(seconds)]
    # When
    written(tmp_path, *rows)
    # Then
    found = read(tmp_path / "list-response.hlog")
    assert set(found) == {
        None,
        "outcome=answered;family=cpp;tenant=t1;up_to_bytes=128",
        "outcome=answered;family=go;tenant=t1;up_to_bytes=128",
    }
    for share in (50, 99, 99.9, 99.99):
        exact = nearest_rank(seconds, share / 100) * 1e6
        assert abs(found[None].get_value_at_percentile(share) - exact) <= exact * 0.001 + 1
    assert abs(found[None].get_max_value() - 70e6) <= 70e6 * 0.001
    percentiles = (tmp_path / "list-response.hgrm").read_text()
    assert percentiles.lstrip().startswith("Value     Percentile TotalCount")
    assert (tmp_path / "list-service.hlog").exists()


def test_refused_requests_have_lines_and_are_no_part_of_the_whole(tmp_path) -> None:
    rows = [request(1.0), request(9.0, outcome="refused", bytes=0, family="")]
    written(tmp_path, *rows)
    found = read(tmp_path / "list-response.hlog")
    assert found[None].get_total_count() == 1
    assert found["outcome=refused;family=;tenant=t1;up_to_bytes=0"].get_total_count() == 1


def test_the_whole_has_what_its_smallest_splits_are_too_small_for(tmp_path) -> None:
    rows = [request(1.0), request(1.0), request(2.0, family="go")]
    written(tmp_path, *rows, most=1)
    found = read(tmp_path / "list-response.hlog")
    assert [each.get_total_count() for each in found.values()] == [3, 2]


def test_histograms_of_an_older_run_are_forgotten(tmp_path) -> None:
    directory = tmp_path / "hdr"
    written(directory, request(1.0))
    forget_histograms(directory)
    forget_histograms(directory)
    assert not directory.exists()


def test_requests_are_split_by_what_makes_them_differ() -> None:
    # Given
    rows = [
        *[request(each) for each in (1.0, 2.0, 3.0)],
        request(4.0, bytes=129),
        request(5.0, namespace="t2/ns"),
        request(6.0, family="go"),
        request(7.0, operation="watch"),
        request(8.0, outcome="unreachable", started_seconds=None),
        request(None, outcome="timeout"),  # nobody knows when it ended
    ]
    # When
    documents = [each.document() for each in splits_of(table(*rows))]
    # Then
    assert [each["requests"] for each in documents] == [3, 1, 1, 1, 1, 1]
    assert (documents[0]["response_seconds"]["p50"], documents[0]["up_to_bytes"]) == (2.0, 128)
    assert documents[0]["service_seconds"]["max"] == 2.5
    assert {each["up_to_bytes"] for each in documents} == {128, 256}
    (never_sent,) = [each for each in documents if each["outcome"] == "unreachable"]
    assert never_sent["service_seconds"] is None
    assert splits_of(table()) == []


@given(sizes=st.lists(st.integers(0, 1 << 40), min_size=1, max_size=40), most=st.integers(1, 10))
def test_whatever_the_bound_every_request_is_in_one_split(sizes: list[int], most: int) -> None:
    # When
    splits = splits_of(table(*(request(1.0, bytes=size) for size in sizes)), most)
    # Then
    assert sum(len(each.response_seconds) for each in splits) == len(sizes)
    assert len(splits) <= most + 1
    for split in splits[:most]:
        fitting = [
            size
            for size in sizes
            if split.up_to_bytes // 2 < size <= split.up_to_bytes
            or (size == split.up_to_bytes == 0)
        ]
        assert len(fitting) == len(split.response_seconds)
    assert (splits[-1].operation == OTHER) is (splits[-1].merged > 0) is (len(splits) == most + 1)
