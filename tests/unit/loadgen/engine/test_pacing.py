import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadgen.engine.pacing import NEVER, UNLIMITED, Paced, ReadBudget, Reader, quantum_bytes

RATES = st.floats(300, 2_000_000)

RATE = 100_000.0


def read_all(size: int, rate: float, lateness_seconds: float = 0.0) -> tuple[float, int]:
    """Read ``size`` available bytes; return the time taken and the number of reads."""
    now, reads = 0.0, 0
    budget = ReadBudget(rate, now)
    while size > 0:
        pause = budget.pause_seconds(now)
        if pause > 0:
            now += pause + lateness_seconds
        taken = min(size, budget.available_bytes(now))
        assert taken > 0
        budget.tokens -= taken
        size -= taken
        reads += 1
        now += 1e-5
    return now, reads


def test_a_megabyte_takes_ten_seconds_at_100_kilobytes_a_second() -> None:
    seconds, reads = read_all(1_000_000, RATE)
    assert seconds == pytest.approx(10, rel=0.02)
    assert reads <= 110


def test_late_timers_do_not_make_the_reader_slower() -> None:
    seconds, _ = read_all(1_000_000, RATE, lateness_seconds=0.05)
    assert seconds == pytest.approx(10, rel=0.02)


def test_a_reader_delayed_for_a_minute_reads_at_most_two_quanta() -> None:
    # Given a reader that was kept waiting for a minute
    budget = ReadBudget(RATE, 0.0)
    available = budget.available_bytes(60.0)
    assert available == 20_000


def test_an_empty_budget_waits_for_a_whole_quantum() -> None:
    budget = ReadBudget(RATE, 0.0)
    budget.tokens -= budget.available_bytes(0.0)
    pause = budget.pause_seconds(0.0)
    assert pause == pytest.approx(0.1)
    assert budget.available_bytes(pause) == pytest.approx(10_000, abs=1)


def test_half_a_quantum_is_read_without_a_pause() -> None:
    budget = ReadBudget(RATE, 0.0)
    budget.tokens -= 4_000
    assert budget.pause_seconds(0.0) == 0


def test_a_clock_that_steps_back_removes_no_tokens() -> None:
    budget = ReadBudget(RATE, 10.0)
    assert budget.available_bytes(5.0) == 10_000


def real_reads(rate: float, arrivals: list[tuple[float, int]], until: float) -> int:
    """Return the amounts read by a client with a ReadBudget, per timer."""
    budget, now, visible, read = ReadBudget(rate, 0.0), 0.0, 0, 0
    pending = list(arrivals)
    while now <= until + 1e-9:
        while pending and pending[0][0] <= now + 1e-9:
            visible += pending.pop(0)[1]
        if read == visible:
            if not pending:
                break
            now = max(now, pending[0][0])
            continue
        size = min(max(1, budget.available_bytes(now)), visible - read)
        budget.tokens -= size
        read += size
        now += budget.pause_seconds(now)
    return read


def drive(reader: Reader, arrivals: list[tuple[float, int]], until: float) -> int:
    """Return the amounts of a reader called only at arrivals and at the end."""
    read = visible = 0
    for when, size in arrivals:
        read = reader.read_by(when, read, visible)
        visible += size
        read = reader.read_by(when, read, visible)
    return reader.read_by(until, read, visible)


@given(
    RATES,
    st.lists(st.tuples(st.floats(0, 20), st.integers(1, 400_000)), min_size=1, max_size=6),
    st.floats(0, 30),
)
def test_a_simulated_paced_reader_reads_as_much_as_a_real_client(rate, arrivals, later) -> None:
    arrivals = sorted(arrivals)
    until = arrivals[-1][0] + later
    found, real = drive(Paced(rate, 0.0), arrivals, until), real_reads(rate, arrivals, until)
    # At most a quantum apart, where timers coincide with the moment
    assert abs(found - real) <= quantum_bytes(rate) + 1


@given(st.floats(5_000, 2_000_000), st.integers(1, 3_000_000))
def test_a_paced_reader_keeps_its_rate_within_one_percent(rate: float, offset: int) -> None:
    reader, visible = Paced(rate, 0.0), int(rate * 40) + offset
    at_ten = reader.read_by(10.0, 0, visible)
    at_thirty = reader.read_by(30.0, at_ten, visible)
    assert at_thirty - at_ten == pytest.approx(20 * rate, rel=0.01)


@given(RATES, st.integers(1, 3_000_000), st.integers(0, 500_000))
def test_an_offset_is_read_at_the_predicted_moment_and_no_earlier(rate, offset, more) -> None:
    reader, visible = Paced(rate, 0.0), offset + more
    when = reader.moment_of(offset, 0.0, 0, visible)
    assert when is not None
    earlier = reader.read_by(when - 1e-6, 0, visible) if when > 1e-6 else 0
    assert earlier < offset
    assert reader.read_by(when, earlier, visible) >= offset


def test_an_offset_beyond_the_available_bytes_has_no_predicted_moment() -> None:
    assert Paced(1000.0, 0.0).moment_of(11, 0.0, 0, 10) is None
    assert UNLIMITED.moment_of(11, 0.0, 0, 10) is None
    assert NEVER.moment_of(1, 0.0, 0, 10) is None


def test_a_silent_reader_reads_no_bytes_and_an_unlimited_reader_reads_all() -> None:
    assert NEVER.read_by(1e9, 0, 10) == 0
    assert UNLIMITED.read_by(0.0, 0, 10) == 10
