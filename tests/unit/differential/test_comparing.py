"""Two plays side by side: what agrees, what a mask hides, what is dropped, what is reported."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from proto import PulsarApi_pb2 as pb
from proto.commands import error_command, lookup_failed
from tests.differential.cases import Case, Step, World
from tests.differential.comparison import compare, differs_from_itself
from tests.differential.deviations import Deviation, load_deviations
from tests.differential.figures import LEAST_OF_A_CLASS, Figures
from tests.differential.player import PATIENT_SECONDS, QUIET_SECONDS, Played, Side
from tests.differential.report import count, difference_lines, listed
from tests.differential.run import DEVIATIONS, Outcome, Run
from tests.support.golden.exchange import Answer, Send, Silence
from tests.support.peers.raw_peer import lookup_command

if TYPE_CHECKING:
    from pathlib import Path

ERROR = pb.MetadataError
SYNTAX = "Invalid topics pattern: Unclosed group near index {0}\n(\n"


def case(count: int = 1, shared: int | None = 0) -> Case:
    steps = [Step("LOOKUP", Send(lookup_command(n, f"t-{n}")), n) for n in range(count)]
    return Case("1-1", World(), shared, tuple(steps))


def played(*answers: Answer) -> Played:
    return Played([(answer,) for answer in answers])


def outcome(real: Played, ours: Played) -> Outcome:
    asked = case(max(len(real.answers), len(ours.answers)))
    return Outcome(asked, real, ours, False, tuple(compare(asked, real, ours)))


def listing(topics: list[str], topics_hash: str = "") -> pb.BaseCommand:
    answer = pb.CommandGetTopicsOfNamespaceResponse(
        request_id=1, topics=topics, topics_hash=topics_hash
    )
    kind = pb.BaseCommand.GET_TOPICS_OF_NAMESPACE_RESPONSE
    return pb.BaseCommand(type=kind, getTopicsOfNamespaceResponse=answer)


@pytest.mark.parametrize(
    ("ours", "codes", "fields"),
    [
        (error_command(1, ERROR, "a"), True, True),
        (error_command(1, ERROR, "b"), True, False),
        (error_command(1, pb.UnknownError, "a"), False, False),
        (lookup_failed(1, ERROR, "a"), False, False),
        (Silence.CLOSED, False, False),
        (Silence.NOTHING, False, False),
    ],
)
def test_kinds_and_codes_then_fields(ours: Answer, codes: bool, fields: bool) -> None:
    # When
    found = outcome(played(error_command(1, ERROR, "a")), played(ours))
    # Then
    assert (found.same_codes, found.same_fields) == (codes, fields)


def test_a_surplus_answer_differs_from_none() -> None:
    # Given
    answer = error_command(1, ERROR, "a")
    # When
    found = outcome(Played([(answer,)]), Played([(answer, answer)]))
    # Then
    assert not found.same_codes


def test_a_conversation_that_ends_early_on_one_side_differs() -> None:
    # Given
    answer = error_command(1, ERROR, "a")
    # Then
    assert not outcome(played(answer, answer), played(answer)).same_codes


def test_the_order_of_topics_is_nobodys_promise() -> None:
    assert outcome(played(listing(["a", "b"])), played(listing(["b", "a"]))).same_fields


def test_where_java_finds_a_mistake_is_masked_and_counted() -> None:
    # Given
    real, ours = (error_command(1, ERROR, SYNTAX.format(index)) for index in (3, 4))
    # When
    found = outcome(played(real), played(ours))
    # Then
    assert found.same_fields
    assert found.steps[0].masked == ("syntax",)
    plain = played(error_command(1, ERROR, "x"))
    assert outcome(plain, plain).steps[0].masked == ()


def test_a_text_that_is_cut_here_agrees_as_far_as_it_goes_and_is_counted() -> None:
    # Given
    long, other = "a" * 900, "a" * 700 + "b" * 200
    cut = error_command(1, ERROR, long)
    whole = pb.BaseCommand()
    whole.CopyFrom(cut)
    # When
    whole.error.message = long
    found = outcome(played(whole), played(cut))
    # Then
    assert found.same_fields
    assert found.steps[0].masked == ("cut",)
    whole.error.message = other
    assert not outcome(played(whole), played(cut)).same_fields


def test_what_differs_as_listed_is_a_count_of_its_own_and_bounded() -> None:
    # Given
    answer, figures = error_command(1, ERROR, "a"), Figures()
    known = Deviation("known", "LOOKUP", re.compile("t-0"), "because")
    # When
    count(figures, outcome(played(answer), played(Silence.CLOSED)), [known])
    # Then
    assert (figures.same_codes, figures.listed_codes) == (0, 1)
    assert any("do not differ as listed" in line for line in figures.complaints())
    assert not any("in kinds and codes, or" in line for line in figures.complaints())


def test_only_one_odd_raw_frame_is_listed_not_all_of_its_kind() -> None:
    # Given
    listed_ones, known = (
        load_deviations(DEVIATIONS),
        bytes.fromhex("0000000d00000009081292018080808008"),
    )
    other = bytes.fromhex("000000090000000508129201058080")
    # Then
    for data, expected in ((known, True), (other, False)):
        step = Step("raw broken_protobuf", Send(None, data))
        assert any(one.covers(step) for one in listed_ones) == expected


def test_more_time_may_tell_only_where_a_step_ends_by_time() -> None:
    # Given
    answer = error_command(1, ERROR, "a")
    timed = Case("1-1", World(), 0, (Step("raw x", Send(None, b"x")),))
    # When
    differing = [
        Outcome(one, played(answer), played(Silence.NOTHING), False, tuple(compare(one, *both)))
        for one in (timed, case())
        for both in [(played(answer), played(Silence.NOTHING))]
    ]
    # Then
    assert [one.of_the_clock for one in differing] == [True, False]
    same = played(answer)
    itself = [Outcome(timed, same, same, dropped, ()) for dropped in (True, False)]
    assert [one.of_the_clock for one in itself] == [True, False]


@pytest.mark.parametrize("slow", [True, False])
def test_what_time_ended_is_played_again_with_more_time(
    monkeypatch: pytest.MonkeyPatch, slow: bool
) -> None:
    # Given
    real, ours = (Side(f"{name}:1", f"{name}:1", f"{name}:2", name) for name in ("real", "ours"))
    timed = Case("1-1", World(), 0, (Step("raw x", Send(None, b"x")),))
    given: list[float] = []

    def play(_: Case, side: Side, __: str, quiet_seconds: float) -> Played:
        given.append(quiet_seconds)
        late = slow and side is ours and quiet_seconds == QUIET_SECONDS
        return played(Silence.NOTHING if late else error_command(1, ERROR, "a"))

    monkeypatch.setattr("tests.differential.run.play", play)
    # When
    with Run(real, ours, 1) as run:
        found = run.play(timed)
    # Then
    assert (found.same_fields, found.dropped, found.patiently) == (True, False, slow)
    assert given == [QUIET_SECONDS] * 3 + [PATIENT_SECONDS] * (3 * slow)


def test_a_server_that_differs_from_itself_is_dropped() -> None:
    one, other = played(listing(["a"], "1")), played(listing(["a"], "2"))
    assert not differs_from_itself(case(), one, one)
    assert differs_from_itself(case(), one, other)
    # In a namespace of its own each play has names of its own, and so another hash.
    assert not differs_from_itself(case(shared=None), one, other)
    assert differs_from_itself(case(shared=None), one, played(listing(["b"], "1")))
    assert differs_from_itself(case(), one, Played())


def test_figures_count_exchanges_and_requests() -> None:
    # Given
    answer, other = error_command(1, ERROR, "a"), error_command(1, ERROR, "b")
    figures = Figures()
    known = Deviation("known", "LOOKUP", re.compile("t-1"), "because")
    # When
    count(figures, outcome(played(answer), played(answer)), [known])
    count(figures, outcome(played(answer, answer), played(answer, other)), [known])
    count(figures, outcome(played(Silence.CLOSED), played(Silence.NOTHING)), [known])
    # Then
    assert (figures.compared, figures.answered) == (3, 2)
    assert (figures.same_codes, figures.same_fields) == (2, 1)
    assert figures.listed == {"known": 1}
    assert figures.requests == {"LOOKUP": 4}
    assert figures.requests_listed["LOOKUP"] == 1
    assert any("agree in kinds and codes" in line for line in figures.complaints())
    assert figures.listed_codes == 0
    assert (
        "66.67% agree in kinds and codes, 0.00% differ as listed, 33.33% otherwise; "
        "33.33% agree in every field"
    ) in figures.summary()


def test_seeds_are_judged_together() -> None:
    # Given
    one, together = Figures(compared=500, same_codes=500, same_fields=500, answered=500), Figures()
    one.requests["LOOKUP"] = one.requests_alike["LOOKUP"] = LEAST_OF_A_CLASS // 2
    one.masked["id"] = 3
    # When
    together.add(one)
    # Then
    assert together.complaints() == []
    together.add(Figures(compared=500, same_codes=499, same_fields=499, answered=500))
    assert together.complaints() == [f"LOOKUP came {LEAST_OF_A_CLASS // 2} times only"]
    together.add(one)
    assert (together.compared, together.masked["id"]) == (1_500, 6)
    assert together.complaints() == []
    assert together.complaints(["LOOKUP", "PING"]) == ["PING came 0 times only"]


def test_a_class_is_judged_without_what_is_listed() -> None:
    # Given
    figures = Figures()
    # When
    figures.count_request(["PING"], alike=False, as_listed=True)
    figures.count_request(["PING"], alike=True, as_listed=False)
    # Then
    assert not any(line.startswith("PING") for line in figures.complaints())
    figures.count_request(["PING"], alike=False, as_listed=False)
    assert "PING: 50.0% of 3 agree" in figures.complaints()


def test_only_the_first_difference_is_looked_up_in_the_list() -> None:
    # Given
    answer, other = error_command(1, ERROR, "a"), error_command(1, ERROR, "b")
    found = outcome(played(answer, answer), played(other, other))
    # Then
    assert listed(found, [Deviation("no", "LOOKUP", re.compile("t-1"), "because")]) is None
    assert listed(found, [Deviation("yes", "LOOKUP", re.compile("t-0"), "because")]) is not None
    assert "message: real a | ours b" in list(difference_lines(found))[-1]


def test_each_deviation_has_a_reason(tmp_path: Path) -> None:
    # Given
    bad = tmp_path / "deviations.toml"
    bad.write_text('[[deviation]]\nname = "x"\nkind = ""\nrequest = "x"\nreason = " "\n')
    # Then
    assert all(one.reason for one in load_deviations(DEVIATIONS))
    with pytest.raises(ValueError, match="needs a reason"):
        load_deviations(bad)
