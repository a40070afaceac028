"""``summary.json`` conforms to the schema."""

from pathlib import Path

from loadgen.results.results import Results
from loadgen.results.summary import SCHEMA, Summary, rendered, summary_of
from loadgen.results.verdict import verdict_of
from tests.support.runs.recorded_run import event, record_run, request, sample


def test_the_shipped_schema_equals_the_schema_of_the_models() -> None:
    assert SCHEMA.read_text() == rendered()


def test_summary_figures_come_from_the_tables_and_facts_from_run_json(tmp_path: Path) -> None:
    run = record_run(
        tmp_path,
        [request(), request(due=2.0, client=1, outcome="refused", reason="full")],
        [event("back", value=0.1)],
        [
            sample("direct.limit", 0, 50.0),
            sample("direct.used", 1, 7.0),
            sample("direct.used", 2, 3.0),
        ],
        servers={"broker": {"version": "1.0", "settings": {"a": "b"}}},
        shocks=[{"at": 0.0, "what": "restart broker", "ready_seconds": 0.5}],
    )
    with Results.open(run) as results:
        found = summary_of(results, verdict_of(results))
    assert Summary.model_validate(found.model_dump(mode="json")) == found
    broker = found.servers["broker"]
    assert (broker.version, broker.settings) == ("1.0", {"a": "b"})
    assert (broker.figures["direct.used"].max, broker.figures["direct.used"].last) == (7.0, 3.0)
    assert (found.clients, found.back[0].back, found.duration_seconds) == (2, 1, 2.1)
    assert found.back[0].back_seconds.p999 is None  # Client 1 never was back.
    assert [(each.outcome, each.reason) for each in found.reasons] == [("refused", "full")]
    assert found.answers[0].most_topics == 3
    assert found.shocks[0].again_seconds is None  # Client 1 never had an answer.


def test_if_all_clients_are_back_every_percentile_has_a_recovery_time(tmp_path: Path) -> None:
    with Results.open(record_run(tmp_path, [request()], [event("back", value=0.1)])) as results:
        (back,) = summary_of(results, verdict_of(results)).model_dump(mode="json")["back"]
    assert set(back["back_seconds"].values()) == {0.1}
