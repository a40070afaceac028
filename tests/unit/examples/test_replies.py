"""The slow-readers load: drawn requests, and their outcomes."""

from dataclasses import replace

import numpy as np
import pytest

from examples.replies import Readers, Requests, Workload, figures_of, requests_of_seed, simulate
from examples.simulation import Ending
from limiter.admission.rules import AdmissionPolicy

FIFO, FAIR = AdmissionPolicy.FIFO, AdmissionPolicy.FAIR
SMALL_WORLD = Workload(limit_bytes=100, small_bytes=10, large_bytes=60, timeout_seconds=25.0)


def requests_of(*rows: tuple[float, bool, float]) -> Requests:
    """Return measured requests of separate connections: arrival, whether large, hold."""
    arrivals, large, holds = zip(*rows, strict=True)
    number = len(rows)
    return Requests(
        arrivals=np.array(arrivals),
        connections=np.arange(number),
        large=np.array(large),
        slow=np.zeros(number, dtype=np.bool_),
        holds=np.array(holds),
        measured=np.ones(number, dtype=np.bool_),
    )


@pytest.mark.parametrize("readers", Readers)
def test_drawn_requests_offer_the_configured_load(readers: Readers) -> None:
    workload = Workload(readers=readers, offered_load=0.6)
    requests = requests_of_seed(workload, 1)
    sizes = np.where(requests.large, workload.large_bytes, workload.small_bytes)
    mean_bytes = float(np.dot(sizes, requests.holds)) / float(requests.arrivals[-1])
    assert mean_bytes / workload.limit_bytes == pytest.approx(0.6, rel=0.05)
    assert requests.large.mean() == pytest.approx(0.1, rel=0.05)
    assert requests.slow.mean() == pytest.approx(0.05, rel=0.05)
    assert np.count_nonzero(requests.measured) == workload.requests


def test_with_slow_connections_exactly_50_connections_are_slow() -> None:
    requests = requests_of_seed(Workload(requests=20_000, readers=Readers.CONNECTIONS), 1)
    slow = set(requests.connections[requests.slow].tolist())
    assert slow == set(range(50))
    assert slow.isdisjoint(requests.connections[~requests.slow].tolist())


def test_by_default_every_request_has_its_own_connection() -> None:
    requests = requests_of_seed(Workload(requests=1_000), 1)
    assert len(set(requests.connections.tolist())) == len(requests.connections)


def test_requests_in_the_warm_up_are_not_measured() -> None:
    workload = Workload(requests=1_000, warm_up_seconds=10.0)
    requests = requests_of_seed(workload, 1)
    first = float(requests.arrivals[requests.measured][0])
    assert first == pytest.approx(10.0, rel=0.1)
    assert not requests.measured[0]


@pytest.mark.parametrize("policy", AdmissionPolicy)
@pytest.mark.parametrize("readers", Readers)
def test_the_same_seed_gives_the_same_figures(policy: AdmissionPolicy, readers: Readers) -> None:
    workload = Workload(requests=3_000, readers=readers, offered_load=1.3, warm_up_seconds=20.0)
    figures = []
    for _ in range(2):
        requests = requests_of_seed(workload, 3)
        run = simulate(workload, requests, policy)
        figures.append(figures_of(workload, requests, run, seed=3, policy=policy))
    assert figures[0] == figures[1]
    assert figures[0].groups["all"].requests == 3_000
    assert figures[0].groups["all"].max_seconds > 0


def test_a_small_reply_waits_behind_a_large_reply_under_fifo_but_not_under_fair() -> None:
    # A large request holds 60 of 100, a second large request must wait, a small one would fit
    requests = requests_of((0.0, True, 2.0), (0.5, True, 1.0), (1.0, False, 1.0))
    waits = {policy: simulate(SMALL_WORLD, requests, policy).waits for policy in AdmissionPolicy}
    assert waits[FIFO].tolist() == [0.0, 1.5, 1.0]
    assert waits[FAIR].tolist() == [0.0, 1.5, 0.0]


def test_a_timed_out_request_counts_with_its_wait_but_uses_no_memory() -> None:
    requests = requests_of((0.0, True, 30.0), (1.0, True, 1.0), (40.0, False, 1.0))
    run = simulate(SMALL_WORLD, requests, FIFO)
    figures = figures_of(SMALL_WORLD, requests, run, seed=1, policy=FIFO)
    assert run.endings.tolist() == [Ending.COMPLETED, Ending.TIMED_OUT, Ending.COMPLETED]
    everybody = figures.groups["all"]
    assert (everybody.completed, everybody.timed_out, everybody.max_seconds) == (2, 1, 25.0)
    assert figures.mean_used_part == pytest.approx(60 * 30 / 40 / 100)


def test_a_request_at_a_full_queue_is_refused_immediately() -> None:
    requests = requests_of((0.0, True, 2.0), (0.5, True, 1.0), (1.0, True, 1.0))
    run = simulate(replace(SMALL_WORLD, max_queue_size=1), requests, FIFO)
    assert run.endings.tolist() == [Ending.COMPLETED, Ending.COMPLETED, Ending.QUEUE_FULL]
    assert run.waits[2] == 0.0


def test_mean_use_covers_the_time_between_the_first_and_the_last_arrival() -> None:
    # 60 held from 0 to 3, then by the waiter from 3 to 4, and 10 from 3.5 on
    requests = requests_of((0.0, True, 3.0), (1.0, True, 1.0), (3.5, False, 9.0))
    run = simulate(SMALL_WORLD, requests, FIFO)
    figures = figures_of(SMALL_WORLD, requests, run, seed=1, policy=FIFO)
    assert figures.mean_used_part == pytest.approx(60 / 100)
    assert figures.high_water_part == pytest.approx(0.7)


def test_waits_are_grouped_by_reply_size_reader_speed_and_connection_use() -> None:
    requests = requests_of((0.0, True, 2.0), (0.5, True, 1.0), (1.0, False, 1.0))
    requests = replace(requests, slow=np.array([True, False, False]))
    run = simulate(SMALL_WORLD, requests, FIFO)
    groups = figures_of(SMALL_WORLD, requests, run, seed=1, policy=FIFO).groups
    waits = {name: (group.requests, group.max_seconds) for name, group in groups.items()}
    assert waits == {
        "all": (3, 1.5),
        "small": (1, 1.0),
        "large": (2, 1.5),
        "fast": (2, 1.5),
        "slow": (1, 0.0),
        "idle": (3, 1.5),
        "busy": (0, 0.0),
    }


def test_a_connection_is_busy_while_it_holds_or_waits_for_another_reply() -> None:
    # All of one connection, and a neighbour; the second waits from 1 to 3, holds until 4
    requests = requests_of(
        (0.0, True, 3.0), (1.0, True, 1.0), (2.0, False, 1.0), (2.5, False, 1.0), (9.0, True, 1.0)
    )
    requests = replace(requests, connections=np.array([7, 7, 8, 7, 7]))
    run = simulate(SMALL_WORLD, requests, FIFO)
    assert run.busy.tolist() == [False, True, False, True, False]


def test_a_refused_request_does_not_make_its_connection_busy() -> None:
    # Of four requests the queue refuses one, and another times out at 26
    requests = requests_of((0.0, True, 30.0), (1.0, True, 1.0), (2.0, True, 1.0), (27.0, True, 9.0))
    requests = replace(requests, connections=np.array([1, 2, 2, 2]))
    run = simulate(replace(SMALL_WORLD, max_queue_size=1), requests, FIFO)
    assert run.endings.tolist()[1:3] == [Ending.TIMED_OUT, Ending.QUEUE_FULL]
    assert run.busy.tolist() == [False, False, True, False]
