from client.discovery.polite import FullJitter, GoBackoff, UnreachableRetries


def test_the_go_backoff_doubles_and_adds_up_to_a_fifth():
    shortest, longest = GoBackoff(lambda: 0.0), GoBackoff(lambda: 1.0)
    assert [shortest.next() for _ in range(3)] == [0.1, 0.2, 0.4]
    assert [round(longest.next(), 2) for _ in range(3)] == [0.12, 0.24, 0.48]


def test_delays_stay_within_their_limits_after_any_number_of_failures():
    for jitter in (lambda: 0.0, lambda: 1.0):
        go, full = GoBackoff(jitter), FullJitter(0.1, 1.0, 3.0, jitter)
        for _ in range(3_000):
            assert 0.1 <= go.next() <= 1.2 * 60
            assert 0.1 <= full.next() <= 3.0


def test_an_unreachable_server_is_retried_exactly_for_the_total_time():
    retries = UnreachableRetries(3.0, lambda: 0.0)
    delays = [retries.next() for _ in range(7)]
    assert [delay and round(delay, 2) for delay in delays] == [0.1, 0.2, 0.4, 0.8, 1.5, None, None]


def test_a_reset_starts_the_retries_from_the_first_delay():
    retries = UnreachableRetries(1.0, lambda: 0.0)
    while retries.next() is not None:
        pass
    retries.reset()
    assert retries.next() == 0.1


def test_full_jitter_uses_its_whole_window():
    first, last = FullJitter(0.1, 1.0, 3.0, lambda: 0.0), FullJitter(0.1, 1.0, 3.0, lambda: 1.0)
    assert [first.next() for _ in range(3)] == [0.1, 0.1, 0.1]
    assert [last.next() for _ in range(4)] == [1.0, 2.0, 3.0, 3.0]
