from __future__ import annotations

import numpy as np
import pytest

from loadgen.corpus.counter_hash import choices, counter_hash, fractions, permuted32


def counters(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint64)


def test_a_counter_has_one_hash_whatever_is_asked_with_it() -> None:
    # Given
    whole = counter_hash(7, 1, counters(100))
    # When
    alone = counter_hash(7, 1, np.array([42], dtype=np.uint64))
    # Then
    assert alone[0] == whole[42]


def test_hashes_are_the_same_in_every_version() -> None:
    assert [hex(value) for value in counter_hash(7, 1, counters(2))] == [
        "0x5b1481f1968b36a9",
        "0xd69209e90bf65ccf",
    ]


def test_seeds_and_streams_are_independent() -> None:
    # When
    sets = [set(counter_hash(seed, stream, counters(1000)).tolist())
            for seed, stream in [(7, 1), (7, 2), (8, 1), (2**63 - 1, 1)]]  # fmt: skip
    # Then
    assert len(set.union(*sets)) == 4000


def test_fractions_are_spread_evenly() -> None:
    # When
    found = fractions(7, 1, counters(100_000))
    # Then
    assert found.min() >= 0
    assert found.max() < 1
    assert np.histogram(found, 10, range=(0, 1))[0] == pytest.approx(10_000, rel=0.05)


def test_choices_follow_their_weights() -> None:
    # When
    picked = choices(7, 1, counters(100_000), np.array([6.0, 3.0, 1.0]))
    # Then
    assert np.bincount(picked) / 100_000 == pytest.approx([0.6, 0.3, 0.1], abs=0.01)


def test_permuted_numbers_never_collide() -> None:
    # When
    found = permuted32(0xDEADBEEFCAFE, counters(2**21) * np.uint64(2047))
    # Then
    assert len(np.unique(found)) == 2**21
    assert found.max() < 2**32
