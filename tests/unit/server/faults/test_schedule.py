"""The choice among commands that match a fault."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from server.faults.fault import When
from server.faults.registry import Schedule

WHENS = st.builds(
    When,
    after=st.integers(0, 20),
    every=st.integers(1, 9),
    probability=st.floats(0.0, 1.0),
    seed=st.integers(0, 2**63 - 1),
    times=st.none() | st.integers(1, 20),
)


def decisions(when: When, count: int) -> list[int]:
    """Return the numbers of the commands with the fault."""
    schedule = Schedule(when)
    return [number for number in range(count) if schedule.due()]


@given(WHENS, st.integers(0, 200))
def test_only_every_nth_command_after_the_first_fires_and_at_most_the_maximum_times(
    when, count
) -> None:
    fired = decisions(when, count)
    assert all(number >= when.after for number in fired)
    assert all((number - when.after) % when.every == 0 for number in fired)
    assert when.times is None or len(fired) <= when.times


@given(WHENS, st.integers(0, 200), st.integers(0, 200))
def test_a_seed_decides_the_same_for_any_number_of_later_commands(when, count, more) -> None:
    first = decisions(when, count)
    assert [one for one in decisions(when, count + more) if one < count] == first


@given(WHENS, st.integers(0, 200))
def test_a_fault_of_probability_1_fires_at_each_due_command(when: When, count: int) -> None:
    certain = replace(when, probability=1.0)
    due = range(when.after, count, when.every)
    assert decisions(certain, count) == list(due)[: when.times]


def test_a_fault_of_probability_0_never_fires_and_of_0_5_for_about_half() -> None:
    assert decisions(When(probability=0.0), 1_000) == []
    assert 400 < len(decisions(When(probability=0.5, seed=7), 1_000)) < 600


def test_different_seeds_choose_different_commands() -> None:
    chosen = {tuple(decisions(When(probability=0.5, seed=seed), 50)) for seed in range(10)}
    assert len(chosen) == 10


def test_seen_and_fired_commands_are_counted() -> None:
    schedule = Schedule(When(every=2, times=2))
    assert [schedule.due() for _ in range(6)] == [True, False, True, False, False, False]
    assert (schedule.seen, schedule.fired, schedule.over) == (6, 2, True)
