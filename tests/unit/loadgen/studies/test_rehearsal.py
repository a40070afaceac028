"""A rehearsal is an advice's storm, with server events."""

from dataclasses import replace
from typing import Any

import pytest
import yaml

from loadgen.behaviours.discover import Discover
from loadgen.documents.reading import parse_document
from loadgen.errors import UsageError
from loadgen.results.expectations import parse_expectation
from loadgen.studies.advise.goal import Goal
from loadgen.studies.advise.limits import Limits, Setting
from loadgen.studies.advise.question import NamespaceShape, Question, document_text
from loadgen.studies.rehearsal import Rehearsal, fullest, rehearsal_text

LIMITS = Limits(heap_mb=20)
SHAPES = tuple(NamespaceShape(f"t/n{n}", 100 + n, 9_000 + 90 * n) for n in range(12))
GROUPS = (
    Discover(name="java-watch", library="java-watch", count=600),
    Discover(name="cpp", library="cpp", count=100),
)


def question(*, proxy: bool = False, shapes: tuple[NamespaceShape, ...] = SHAPES) -> Question:
    setting = Setting(LIMITS, LIMITS if proxy else None)
    return Question(GROUPS, shapes, Goal(), "pulsar", setting)


def document(*asked: Any, **more: Any) -> dict[str, Any]:
    text = rehearsal_text(Rehearsal(*asked, **more))
    parse_document(text, check_expectation=parse_expectation)  # The text is a document.
    found: dict[str, Any] = yaml.safe_load(text)
    return found


def test_a_deploy_is_the_storm_of_an_advice_with_the_current_limits() -> None:
    more = {"broker": {"maxConcurrentLookupRequest": "700"}}
    asked = replace(question(), more=more)
    advised = yaml.safe_load(document_text(asked, asked.today))
    found = document(asked, "deploy")
    assert found["servers"]["broker"]["maxConcurrentLookupRequest"] == "700"
    for told in ("name", "description"):
        advised.pop(told)
        assert found.pop(told)
    assert found == advised


def test_a_restart_happens_after_all_clients_have_connected() -> None:
    found = document(question(), "restart", away_seconds=20.0)
    assert found["phases"] == {"warm_up": 30.0, "measure": 1, "hold": 140.0, "drain": 5}
    assert found["shocks"] == [{"at": 30.0, "restart": "broker", "for": 20.0}]
    starts = [each["arrive"]["rate"] for each in found["clients"]]
    assert starts == [25, 5]


def test_the_event_proxy_restarts_the_proxy() -> None:
    found = document(question(proxy=True), "proxy")
    assert found["shocks"] == [{"at": 30.0, "restart": "proxy", "for": 30.0}]


def test_a_rolling_restart_drops_all_clients_at_the_restart_of_each_broker() -> None:
    found = document(question(), "rolling", brokers=3, away_seconds=20.0)
    moments = [(each["at"], each["anew"]) for each in found["shocks"]]
    assert moments == [(at, g) for at in (30.0, 110.0, 190.0) for g in ("java-watch", "cpp")]


def test_the_fullest_of_several_brokers_has_more_than_its_even_share() -> None:
    share = fullest(question(), 3)
    assert len(share.listed) in range(5, 9)
    watching, polling = share.groups
    assert watching.count == 50 * len(share.listed)
    assert polling.count == 43  # 33 and two deviations of 4.7
    assert fullest(question(), 3).groups == share.groups
    # All watches of a namespace are at one broker
    alone = fullest(question(shapes=SHAPES[:1]), 3)
    assert [each.count for each in alone.groups] == [600, 43]


def test_after_a_restart_polling_clients_have_a_poll_period_more_to_come_back() -> None:
    restart = Rehearsal(question(), "restart", away_seconds=20.0)
    assert [restart.due_seconds(each) for each in GROUPS] == [80.0, 140.0]
    deploy = Rehearsal(question(), "deploy")
    assert [deploy.due_seconds(each) for each in GROUPS] == [60.0, 60.0]


@pytest.mark.parametrize(
    ("proxy", "event", "brokers", "told"),
    [
        (False, "rolling", 1, "say --brokers 3"),
        (False, "proxy", 1, "add --proxy-conf"),
        (True, "proxy", 2, "leave out --brokers"),
    ],
)
def test_an_event_without_the_servers_that_take_part_is_refused(
    proxy, event, brokers, told
) -> None:
    with pytest.raises(UsageError, match=told):
        Rehearsal(question(proxy=proxy), event, brokers)


def test_a_rehearsal_reports_the_share_of_each_limit_taken_by_the_largest_list() -> None:
    largest = NamespaceShape("t/big", 50_000, 5_000_000)
    tight = Setting(Limits(heap_mb=10, direct_mb=0), Limits(heap_mb=100, direct_mb=5))
    near, luck = Rehearsal(
        Question(GROUPS, (*SHAPES, largest), Goal(), "pulsar", tight, seed=4), "restart"
    ).told()
    assert near.startswith(
        "The largest list, of 50,000 names in t/big, takes 6.3 % of the proxy's heap limit, "
        "97 % of the proxy's direct limit, 63 % of the broker's heap limit. Above"
    )
    assert luck.endswith("with the chances of seed 4: --set seed=5 has others.")


def test_a_rehearsal_reports_its_assumptions() -> None:
    told = "; ".join(Rehearsal(question(proxy=True), "restart", 3).assumed())
    for said in ("one broker of 3 is played", "takes over all", "the proxy serves the clients of"):
        assert said in told
    assert "away for 30.0 s" in "; ".join(Rehearsal(question(), "restart").assumed())
