from broker.messages.publishing.entry_sizes import EntrySizes


def test_a_period_has_what_came_since_the_one_before() -> None:
    sizes = EntrySizes()
    sizes.add(128)
    sizes.period_ended()
    for size in (129, 2_000_000):
        sizes.add(size)
    sizes.period_ended()
    assert sizes.last_counts == (0, 1, 0, 0, 0, 0, 0, 0, 1)
    assert sizes.last_bytes == 2_000_129
    assert sum(sizes.counts) == 3
