from __future__ import annotations

from pathlib import Path

from proto import PulsarApi_pb2 as pb
from tests.differential.dialogues.generating import FEWEST_STEPS, MOST_STEPS, dialogues
from tests.differential.dialogues.report import COMMANDS
from tests.support.dialogues import wire
from tests.support.dialogues.dialogue import load_dialogues

MANY = 300
GOLDEN = Path(__file__).parents[3] / "golden" / "messages" / "dialogues.jsonl"
IDS = {number: pb.MessageIdData(ledgerId=1, entryId=number) for number in range(64)}


def test_the_same_seed_gives_the_same_but_for_topics() -> None:
    # When
    first, again = dialogues(5, 20, "a"), dialogues(5, 20, "b")
    # Then
    assert [one.about("t").steps for one in first] == [one.about("t").steps for one in again]
    assert len({one.topic for one in first + again}) == 40


def test_every_command_comes_and_can_be_sent() -> None:
    # When
    steps = [step for one in dialogues(5, MANY, "a") for step in one.steps]
    # Then
    assert {step.command for step in steps} == set(COMMANDS)
    sent = [step.does for step in steps if not step.is_reset and not step.is_rest]
    assert all(wire.command_bytes(does, IDS) for does in sent)


def test_a_dialogue_is_of_bounded_length_and_begins_with_a_producer_and_a_consumer() -> None:
    for one in dialogues(5, MANY, "a"):
        assert FEWEST_STEPS - 3 <= len(one.steps) <= MOST_STEPS
        assert {one.steps[0].command, one.steps[1].command} == {"PRODUCER", "SUBSCRIBE"}


def test_every_command_of_the_recording_comes_with_all_fields_that_are_recorded() -> None:
    # Given
    recorded = {
        (step.command, field)
        for one in load_dialogues(GOLDEN)
        for step in one.steps
        for field in step.does
    }
    # When
    written = {
        (step.command, field)
        for one in dialogues(5, MANY, "a")
        for step in one.steps
        for field in step.does
    }
    # Then
    assert recorded <= written
