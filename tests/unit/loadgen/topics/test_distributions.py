import numpy as np
import pytest

from loadgen.topics.distributions import (
    choices,
    counter_hash,
    dealt,
    fractions,
    permuted32,
    zipf_weights,
)


def counters(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint64)


def test_the_hash_of_a_counter_is_stable_and_independent_of_the_batch() -> None:
    whole = counter_hash(7, 1, counters(100))
    assert counter_hash(7, 1, np.array([42], dtype=np.uint64))[0] == whole[42]
    assert [hex(value) for value in whole[:2]] == ["0x5b1481f1968b36a9", "0xd69209e90bf65ccf"]


def test_seeds_and_streams_are_independent() -> None:
    streams = [(7, 1), (7, 2), (8, 1), (2**63 - 1, 1)]
    sets = [set(counter_hash(seed, stream, counters(1000)).tolist()) for seed, stream in streams]
    assert len(set.union(*sets)) == 4000


def test_fractions_are_spread_evenly() -> None:
    found = fractions(7, 1, counters(100_000))
    assert found.min() >= 0
    assert found.max() < 1
    assert np.histogram(found, 10, range=(0, 1))[0] == pytest.approx(10_000, rel=0.05)


def test_choices_follow_their_weights() -> None:
    picked = choices(7, 1, counters(100_000), np.array([6.0, 3.0, 1.0]))
    assert np.bincount(picked) / 100_000 == pytest.approx([0.6, 0.3, 0.1], abs=0.01)


def test_permuted_numbers_never_collide() -> None:
    found = permuted32(0xDEADBEEFCAFE, counters(2**21) * np.uint64(2047))
    assert len(np.unique(found)) == 2**21
    assert found.max() < 2**32


def test_dealing_by_weight_keeps_the_total_and_no_share_is_empty() -> None:
    assert dealt(10, zipf_weights(10, 3)) == [1] * 10
    assert sum(dealt(1234, zipf_weights(17, 1.2))) == 1234
