"""Percentiles and how figures are written."""

import numpy as np
import pytest

from examples.figures import (
    PolicyChoice,
    format_count,
    format_wait,
    percentile,
    wait_figures,
    with_range,
)
from examples.simulation import Ending
from limiter.admission.rules import AdmissionPolicy


def test_a_percentile_is_an_observed_wait() -> None:
    waits = np.arange(1.0, 201.0)
    assert percentile(waits, 99) == 198.0
    assert percentile(waits, 99.9) == 200.0
    assert percentile(waits, 50) == 100.0
    assert percentile(np.array([]), 99) == 0.0


def test_requests_are_counted_by_their_ending() -> None:
    endings = [Ending.COMPLETED, Ending.TIMED_OUT, Ending.QUEUE_FULL, Ending.STALLED, 0, 1]
    figures = wait_figures(np.zeros(6), np.array(endings))
    assert (figures.completed, figures.timed_out) == (2, 2)
    assert (figures.queue_full, figures.stalled, figures.refused) == (1, 1, 4)


def test_a_range_is_shown_only_if_its_rounded_ends_differ() -> None:
    assert with_range([3.0, 1.0, 2.0], format_count) == "2 (1 to 3)"
    assert with_range([2.1, 2.2], format_count) == "2"


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0, "0 s"), (0.0214, "0.021 s"), (25.0, "25.00 s")]
)
def test_a_wait_is_formatted_with_its_significant_digits(seconds: float, words: str) -> None:
    assert format_wait(seconds) == words


def test_policy_choice_both_means_fifo_and_then_fair() -> None:
    assert PolicyChoice.BOTH.policies == (AdmissionPolicy.FIFO, AdmissionPolicy.FAIR)
    assert PolicyChoice.FAIR.policies == (AdmissionPolicy.FAIR,)
