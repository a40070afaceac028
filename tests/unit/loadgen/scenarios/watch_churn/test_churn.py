"""A watcher that was told wrong is found: a lost update, a doubled one, wrong names at the end."""

from __future__ import annotations

from dataclasses import dataclass, field

from loadgen.clients.records import Outcome, RequestRecord
from loadgen.scenario import ClientPlan, NamespaceExpectation
from loadgen.scenarios.watch_churn.churn import Churn
from loadgen.scenarios.watch_churn.scenario import Change
from loadgen.scenarios.watch_churn.watched_names import WatchedNames
from proto.topic_hash import topics_hash

NAMESPACE = NamespaceExpectation(name="load/ns")
STANDING = frozenset({"persistent://load/ns/a", "persistent://load/ns/b"})
TOPIC = "persistent://load/ns/churn-000000"
CAME, WENT = Change(1.0, TOPIC, created=True), Change(2.0, TOPIC, created=False)


@dataclass
class Told:
    """A watcher that the test tells; no socket."""

    number: int = 0
    lost: str | None = None
    names: WatchedNames = field(
        default_factory=lambda: WatchedNames(STANDING, topics_hash(STANDING))
    )

    @property
    def plan(self) -> ClientPlan:
        return ClientPlan(self.number, NAMESPACE, 0.0, None)

    def tell(self, change: Change, at_seconds: float) -> None:
        names = STANDING | ({change.topic} if change.created else set())
        new, deleted = ([change.topic], []) if change.created else ([], [change.topic])
        self.names.update(new, deleted, topics_hash(names), at_seconds)


def churn_of(*watchers: Told, listed: frozenset[str] = STANDING) -> Churn:
    """Both changes were asked for and confirmed, a tenth of a second after they were due."""
    churn = Churn("load/ns", 9, [CAME, WENT], watchers, listed=listed)
    for number, change in enumerate(churn.changes):
        due, answered = change.due_seconds, change.due_seconds + 0.1
        call = RequestRecord(9, "load/ns", due, due, None, answered, Outcome.ANSWERED)
        call.operation = "create" if change.created else "delete"
        churn.asked(number, call)
    return churn


def of_watchers(churn: Churn) -> list[RequestRecord]:
    return [each for each in churn.records(9.0) if each.operation == "update"]


def wrong(churn: Churn) -> list[str]:
    return [each.reason for each in of_watchers(churn) if each.outcome is Outcome.WRONG]


def test_an_update_takes_from_the_answer_of_the_call_to_its_arrival() -> None:
    watcher = Told()
    watcher.tell(CAME, 1.25)
    watcher.tell(WENT, 2.05)  # before the call is answered
    churn = churn_of(watcher)
    assert churn.all_told
    times = [
        (each.intended_start_seconds, each.started_seconds, each.finished_seconds)
        for each in of_watchers(churn)
    ]
    assert times == [(1.0, 1.1, 1.25), (2.0, 2.05, 2.05)]
    assert {each.outcome for each in churn.records(9.0)} == {Outcome.ANSWERED}
    assert churn.detail()["watchers_right"] == 1


def test_a_lost_update_is_wrong() -> None:
    watcher = Told(3)
    watcher.tell(CAME, 1.25)
    churn = churn_of(watcher)
    assert not churn.all_told
    lost, names = wrong(churn)
    assert lost == f"watcher 3 of load/ns was never told that {TOPIC} was deleted"
    assert "0 are missing, 1 are gone" in names


def test_a_deletion_without_its_creation_shows_that_one_was_lost() -> None:
    watcher = Told()
    watcher.tell(WENT, 2.2)
    churn = churn_of(watcher)
    assert wrong(churn) == [
        f"watcher 0 of load/ns was never told that {TOPIC} was created",
        f"watcher 0 of load/ns was told that {TOPIC} was deleted, which it did not have",
    ]
    assert churn.detail()["doubled"] == 0


def test_a_doubled_update_is_wrong() -> None:
    watcher = Told()
    for change, at in ((CAME, 1.2), (CAME, 1.3), (WENT, 2.2)):
        watcher.tell(change, at)
    churn = churn_of(watcher)
    assert wrong(churn) == [f"watcher 0 of load/ns was told again that {TOPIC} was created"]
    assert churn.detail()["doubled"] == 1


def test_names_that_differ_from_a_listing_at_the_end_are_wrong() -> None:
    watcher = Told()
    watcher.tell(CAME, 1.2)
    watcher.tell(WENT, 2.2)
    (problem,) = wrong(churn_of(watcher, listed=STANDING | {"persistent://load/ns/unseen"}))
    assert "1 are missing" in problem


def test_a_last_hash_that_is_not_that_of_the_names_is_wrong() -> None:
    watcher = Told()
    watcher.tell(CAME, 1.2)
    watcher.names.update([], [TOPIC], "00000000", 2.2)
    assert "was told hash 00000000 last" in wrong(churn_of(watcher))[0]


def test_a_topic_that_came_and_went_between_two_updates_is_not_lost() -> None:
    churn = churn_of(Told())
    assert [each.outcome for each in of_watchers(churn)] == [Outcome.TIMEOUT] * 2


def test_a_watcher_whose_connection_was_lost_is_not_waited_for() -> None:
    churn = churn_of(Told(lost="closed by the server"))
    assert churn.all_told
    assert {each.outcome for each in of_watchers(churn)} == {Outcome.DISCONNECTED}


def test_changes_that_the_server_refused_are_nobodys_updates() -> None:
    churn = Churn("load/ns", 9, [CAME], [Told()], listed=STANDING)
    churn.asked(0, RequestRecord(9, "load/ns", 1.0, 1.0, None, 1.1, Outcome.REFUSED))
    assert churn.all_told
    assert of_watchers(churn) == []


def test_an_interrupted_run_leaves_out_what_had_not_arrived() -> None:
    watcher = Told()
    watcher.tell(CAME, 1.25)
    churn = churn_of(watcher)
    kept = [each for each in churn.records(9.0, interrupted=True) if each.operation == "update"]
    assert [each.outcome for each in kept] == [Outcome.ANSWERED]
