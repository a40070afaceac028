"""A case is made smaller as long as it differs, and can be written down as a recorded exchange."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from unittest.mock import create_autospec

import pytest

from proto import PulsarApi_pb2 as pb
from tests.differential.__main__ import _record
from tests.differential.cases import (
    HASH_TOKEN,
    NAMESPACE,
    NAMESPACE_TOKEN,
    NO_HASH,
    Case,
    Step,
    World,
)
from tests.differential.player import Played
from tests.differential.recording import recorded
from tests.differential.run import Outcome, Run
from tests.differential.shrinker import MOST_SECONDS, shrink
from tests.support.golden.exchange import Expect, Rest, Send, Silence, parse_row
from tests.support.peers.raw_peer import lookup_command, topics_command

if TYPE_CHECKING:
    from pathlib import Path


PONG = pb.BaseCommand(type=pb.BaseCommand.PONG, pong=pb.CommandPong())


def told(*hashes: str, watch: str = "") -> tuple[pb.BaseCommand, ...]:
    """Return answers that tell hashes of topics, the last perhaps to a watch."""
    listings = [pb.CommandGetTopicsOfNamespaceResponse(request_id=1, topics_hash=h) for h in hashes]
    kind = pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
    answers = [pb.BaseCommand(type=kind, getTopicsOfNamespaceResponse=one) for one in listings]
    if watch:
        success = pb.CommandWatchTopicListSuccess(request_id=1, watcher_id=1, topics_hash=watch)
        kind = pb.BaseCommand.WATCH_TOPIC_LIST_SUCCESS
        answers.append(pb.BaseCommand(type=kind, watchTopicListSuccess=success))
    return tuple(answers)


def listing_step(pattern: str, **fields: object) -> Step:
    return Step(
        "GET_TOPICS", Send(topics_command(1, NAMESPACE, topics_pattern=pattern, **fields)), 1
    )


def test_steps_fields_and_characters_that_do_not_matter_are_left_out() -> None:
    # Given
    odd = listing_step(rf"persistent://{NAMESPACE}/a.*\Qb\E(?=c)", topics_hash="x", mode=2)
    steps = (Step("LOOKUP", Send(lookup_command(2, "x")), 2), odd, odd)

    def differs(case: Case) -> bool:
        return any(
            "(?=" in step.does.command.getTopicsOfNamespace.topics_pattern
            for step in case.steps
            if isinstance(step.does, Send) and step.does.command is not None
        )

    # When
    smallest = shrink(Case("1-1", World(), 0, steps), differs)
    # Then
    (step,) = smallest.steps
    assert isinstance(step.does, Send)
    assert step.does.command is not None
    request = step.does.command.getTopicsOfNamespace
    assert request.topics_pattern == "(?="
    assert not request.HasField("topics_hash")
    assert not request.HasField("mode")


def test_shrinking_stops_after_so_many_plays() -> None:
    # Given
    played: list[Case] = []

    def never(case: Case) -> bool:
        played.append(case)
        return False

    case = Case("1-1", World(), 0, (listing_step("a" * 200),))
    # When / Then
    assert shrink(case, never, most_plays=5) == case
    assert len(played) == 5


@pytest.mark.parametrize("alike", [True, False])
def test_a_smallest_case_is_recorded_without_the_users_of_its_topics(
    tmp_path: Path, alike: bool
) -> None:
    # Given
    world = World(topics=("t",), non_persistent=("used",))
    case = Case("7-12", world, 3, (listing_step("a"),))
    run, path = create_autospec(Run, instance=True), tmp_path / "odd.jsonl"
    run.differs_like.return_value = lambda asked: alike and not asked.world.non_persistent
    run.recording.side_effect = lambda asked, name: {
        "case": name,
        "exchange": [asked.world.topics, asked.shared],
    }
    # When
    said = _record(run, Outcome(case, Played(), Played(), False, ()), case, path)
    # Then
    if alike:
        assert json.loads(path.read_text()) == {"case": "odd/odd_7_12", "exchange": [["t"], None]}
    else:
        assert not path.exists()
        assert said.startswith("not recorded: 7-12")


def test_what_a_real_server_said_is_written_as_a_recorded_exchange() -> None:
    # Given
    path = f"/admin/v2/persistent/{NAMESPACE}/new"
    steps = (
        listing_step("a"),
        Step("PONG", Send(None, NAMESPACE_TOKEN.encode())),
        Step("REST change", Rest("PUT", path, "2", 409)),
    )
    case = Case("1-1", World(topics=("t",)), None, steps)
    answer, name = PONG, "n" * len(NAMESPACE_TOKEN)
    # When
    line = recorded(case, Played([(answer,), (), (answer,)]), name, "odd/x")
    # Then
    rows = [parse_row(row) for row in line["exchange"]]
    assert NAMESPACE_TOKEN not in str(line)
    assert rows[0] == Rest("PUT", f"/admin/v2/namespaces/public/{name}", None, 204)
    assert rows[3] == Expect(answer)
    assert rows[4] == Send(None, name.encode())
    assert rows[5] == Expect(Silence.NOTHING)
    assert rows[6] == Rest("PUT", path.replace(NAMESPACE_TOKEN, name), "2", 409)


def test_the_last_hash_that_was_told_is_written_in_its_tokens_place() -> None:
    # Given
    answers = [told("11111111", "22222222"), (PONG,), told(watch="33333333"), (PONG,)]
    case = Case("1-1", World(), None, (listing_step("a", topics_hash=HASH_TOKEN),) * 4)
    # When
    line = recorded(case, Played(answers), "n" * len(NAMESPACE_TOKEN), "odd/x")
    # Then
    sent = [row for row in map(parse_row, line["exchange"]) if isinstance(row, Send)]
    hashes = [row.command and row.command.getTopicsOfNamespace.topics_hash for row in sent]
    assert hashes == [NO_HASH, "22222222", "22222222", "33333333"]


def test_after_its_time_nothing_is_asked_again() -> None:
    # Given
    asked: list[Case] = []
    times = iter([0.0, 1.0, MOST_SECONDS])
    case = Case("1-1", World(), 0, (listing_step("a"), listing_step("b")))
    # When
    found = shrink(case, lambda one: asked.append(one) or False, clock=lambda: next(times))
    # Then
    assert (found, len(asked)) == (case, 1)
