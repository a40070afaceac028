"""The process behind a pattern: answers and time limit."""

import math
from array import array
from itertools import accumulate

import pytest

from broker.patterns.java.pattern import translated
from broker.patterns.worker import LENGTH, TOOK, answer, pack_job

ENDLESS = "t/n/(?!zz)(?:(?:x|x)*)*q"


def job(pattern: str, *paths: str, seconds: float = 60.0) -> bytes:
    """Return a job without the length prefix."""
    names = [path.encode() for path in paths]
    offsets = array("i", accumulate(map(len, names), initial=0)).tobytes()
    packed = pack_job(seconds, translated(pattern), len(names), offsets, b"".join(names))
    assert LENGTH.unpack(packed[: LENGTH.size])[0] == len(packed) - LENGTH.size
    return packed[LENGTH.size :]


@pytest.mark.parametrize(
    ("paths", "mask"),
    [
        (("t/n/a", "t/n/b", "t/n/aa"), b"\1\0\0"),
        (("t/n/é", "t/n/a", "t/n/b", "t/n/\U0001f600"), b"\1\1\0\1"),
        ((), b""),
    ],
    ids=["ASCII", "not ASCII", "none"],
)
def test_the_worker_answers_a_byte_for_each_path(paths: tuple[str, ...], mask: bytes) -> None:
    answered = answer(job("t/n/(?!b).", *paths))
    assert answered[TOOK.size :] == mask
    assert 0 <= TOOK.unpack_from(answered)[0] < 60


def test_a_job_over_its_processor_time_has_no_mask_and_the_next_job_has_a_mask() -> None:
    answered = answer(job(ENDLESS, f"t/n/{'x' * 40}-1", seconds=0.05))
    assert answered[TOOK.size :] == b""
    assert TOOK.unpack_from(answered)[0] >= 0.02  # Kernels count processor time in ticks.
    assert answer(job(ENDLESS, "t/n/xq"))[TOOK.size :] == b"\1"


@pytest.mark.parametrize("seconds", [1e-9, 1e12, math.inf])
def test_an_extreme_time_limit_is_accepted_by_the_timer(seconds: float) -> None:
    assert len(answer(job("(?!b).", "a", seconds=seconds))) in {TOOK.size, TOOK.size + 1}
