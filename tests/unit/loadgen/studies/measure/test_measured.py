"""Probes of a broker with known times find the times, each within a range."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from loadgen.documents.model import Document
from loadgen.documents.reading import parse_document
from loadgen.documents.service_times import PULSAR
from loadgen.errors import LoadgenError
from loadgen.places.options import RunOptions
from loadgen.plan.arrivals import Concurrency
from loadgen.studies.measure import measured as module
from loadgen.studies.measure.fitted import Figure, Fitted
from loadgen.studies.measure.measured import Measured, measured, probes
from tests.support.runs.recorded_run import request
from tests.unit.loadgen.studies.fake_experiment import FakeExperiment

SIZES = {"t/a": 100, "t/b": 1_000, "t/c": 4_000}
FRESH = tuple(f"t/fresh{number}" for number in range(12))
LOOKUP, FIRST, WAIT = 0.001, 0.006, 0.0005
NAME_ALONE, NAME_OF_MANY, MATCH_ALONE, MATCH_OF_MANY = 2e-6, 0.3e-6, 3e-6, 2e-6
REQUEST = PULSAR.accept + 2 * (PULSAR.read + PULSAR.write)


def lookups(clients: int) -> Iterator[dict[str, Any]]:
    for client in range(clients):
        for number, seconds in enumerate((FIRST, LOOKUP, LOOKUP)):
            at = client + number / 10
            yield took(seconds, at, client=client, operation="lookup", topics=None)


def in_turn(operation: str, name: float) -> Iterator[dict[str, Any]]:
    for client, (namespace, size) in zip(range(60), 20 * [*SIZES.items()], strict=True):
        seconds = LOOKUP + WAIT + size * name
        topics = size if operation == "list" else None
        said = {"client": client, "namespace": namespace}
        yield took(seconds, client, operation=operation, topics=topics, **said)
        if operation == "watch":
            yield took(LOOKUP, client, operation="lookup", topics=None, **said)


def at_once(name: float, sizes: list[int]) -> Iterator[dict[str, Any]]:
    done = 0.0
    for client, size in zip(range(60), 60 // len(sizes) * sizes, strict=True):
        done += REQUEST + size * name
        yield took(done, 0.0, client=client, topics=size, bytes=50 * size)


def took(seconds: float, at: float, **said: Any) -> dict[str, Any]:
    return request(due=at, done=at + seconds, service_seconds=seconds, **said)


def rows(document: Document) -> list[dict[str, Any]]:
    matched, every = NAME_ALONE + MATCH_ALONE, [*SIZES.values()]
    by_probe = {
        "lookups": lambda: lookups(12),
        "alone": lambda: in_turn("list", NAME_ALONE),
        "small-64": lambda: at_once(NAME_OF_MANY, [100]),
        "lists-8": lambda: at_once(NAME_OF_MANY, every),
        "lists-64": lambda: at_once(NAME_OF_MANY, every),
        "pattern": lambda: in_turn("list", matched),
        "pattern-64": lambda: at_once(MATCH_OF_MANY, every),
        "watch": lambda: in_turn("watch", matched),
    }
    return [*by_probe[document.name]()]


def find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fake: FakeExperiment) -> Measured:
    monkeypatch.setattr(module, "experiment", fake)
    options = RunOptions(out=tmp_path, service_url="pulsar://127.0.0.1:6650")
    return measured(options, tuple(SIZES), FRESH, 5.0)


def test_known_service_times_are_found_from_the_probes(tmp_path: Path, monkeypatch) -> None:
    found = find(tmp_path, monkeypatch, FakeExperiment(rows, server_version="4.2.4"))
    times = found.times
    assert times.list_wait == pytest.approx(WAIT, rel=1e-3)
    # Names of 50 bytes, answered by two threads
    assert times.answer_name == pytest.approx(2 * 2 * NAME_OF_MANY, rel=1e-3)
    assert times.list_name == pytest.approx(2 * NAME_ALONE - times.answer_name, rel=1e-3)
    matched = 2 * 2 * (MATCH_OF_MANY - NAME_OF_MANY)
    assert times.match_name == pytest.approx(matched, rel=1e-3)
    assert times.watch_name == pytest.approx(2 * MATCH_ALONE, rel=1e-3)
    assert times.first_lookup == pytest.approx(FIRST - LOOKUP, rel=1e-3)
    kept = ("accept", "read", "write", "read_byte", "write_byte", "threads")
    assert found.kept == kept
    assert times.accept == PULSAR.accept
    # and single measurements lie within the ranges
    assert found.fitted.times["answer_name"].high >= 0.999 * 2 * 2 * NAME_OF_MANY
    assert found.fitted.times["match_name"].high >= 0.999 * 2 * MATCH_ALONE


def test_the_band_is_of_whole_answers_and_at_least_the_recorded_band() -> None:
    def band(listed: float, matched: float) -> float:
        steady = Figure(1e-6, 1e-6, 1e-6, 5)
        name, match = (replace(steady, high=high * 1e-6) for high in (listed, matched))
        each = {"list_name": name, "answer_name": name, "match_name": match, "watch_name": steady}
        return Fitted(each, {}, ()).band

    assert band(1, 1) == 2
    assert band(5, 2) == pytest.approx(4)


def test_a_scenario_reads_the_written_service_times(tmp_path: Path, monkeypatch) -> None:
    found = find(tmp_path, monkeypatch, FakeExperiment(rows, server_version="4.2.4"))
    file = tmp_path / "times.yaml"
    file.write_text(found.text())
    text = f"clients: [{{name: a, do: list, count: 1}}]\nservers: {{service_times: {file}}}\n"
    taken = parse_document(text, Path("m.yaml")).servers.service_times
    assert taken.model_dump() == pytest.approx(found.times.model_dump(), rel=1e-3)
    assert "server_version: 4.2.4" in found.text()


def test_each_probe_uses_the_running_broker_and_takes_no_samples(tmp_path, monkeypatch) -> None:
    # A metrics page of many topics takes a broker longer than the measured work.
    fake = FakeExperiment(rows, server_version="4.2.4")
    find(tmp_path, monkeypatch, fake)
    assert {options.service_url for _, options in fake.run} == {"pulsar://127.0.0.1:6650"}
    assert not any(options.admin_urls for _, options in fake.run)


def test_sequential_requests_are_measured_before_concurrent_requests() -> None:
    def at_once(document: Document) -> int:
        arrive = document.clients[0].arrive
        return arrive.count if isinstance(arrive, Concurrency) else 1

    crowds = [at_once(each) > 1 for each in probes(tuple(SIZES), FRESH, 5.0)]
    assert crowds == sorted(crowds)


def test_refusals_are_reported_and_too_few_answers_fail_the_measurement(
    tmp_path, monkeypatch
) -> None:
    numbers = count()

    def refusing(document: Document) -> list[dict[str, Any]]:
        found = rows(document)
        if document.name == "lists-8":
            found[0] |= {"outcome": "refused", "reason": "too many"}
        return found

    found = find(tmp_path, monkeypatch, FakeExperiment(refusing, server_version=""))
    assert found.fitted.refused == ("lists-8: 1 of 60 got no answer: too many",)

    def silent(document: Document) -> list[dict[str, Any]]:
        del document
        return [request(client=next(numbers), outcome="timeout", reason="no answer")]

    with pytest.raises(LoadgenError, match=r"too little was answered .*no answer"):
        find(tmp_path, monkeypatch, FakeExperiment(silent, server_version=""))
