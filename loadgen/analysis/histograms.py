"""HDR histograms of a run, as the standard log (V2, format 1.2) and as percentile tables.

Values are microseconds with three significant digits, up to a day. A log has one line for all
answered requests of an operation, without a tag, and a tagged one for each of its splits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from hdrh.histogram import HdrHistogram

from loadgen.analysis.splits import wholes_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import pyarrow as pa

    from loadgen.analysis.splits import Split

HDR_DIRECTORY = "hdr"
_LONGEST_MICROSECONDS = 86_400_000_000
_SIGNIFICANT_DIGITS = 3
_HEADING = (
    "#[Histogram log format version 1.2]\n"
    "#[Values are microseconds, the largest of a line is in milliseconds]\n"
    '"StartTimestamp","Interval_Length","Interval_Max","Interval_Compressed_Histogram"\n'
)


def histogram_of(seconds: np.ndarray) -> Any:  # noqa: ANN401 - the library has no types
    """Return the histogram of durations; counted here, as one call for each is ten times slower."""
    histogram = HdrHistogram(1, _LONGEST_MICROSECONDS, _SIGNIFICANT_DIGITS)
    micros = np.clip(np.rint(seconds * 1e6), 0, _LONGEST_MICROSECONDS).astype(np.int64)
    if not len(micros):
        return histogram
    magnitude = histogram.sub_bucket_half_count_magnitude
    # The bit length of a value decides its bucket, the bits behind the first its place in it.
    bits = np.frexp((micros | histogram.sub_bucket_mask).astype(np.float64))[1]
    buckets = bits.astype(np.int64) - (magnitude + 1)
    places = np.right_shift(micros, buckets) - histogram.sub_bucket_half_count
    indices, counts = np.unique(((buckets + 1) << magnitude) + places, return_counts=True)
    for index, count in zip(indices.tolist(), counts.tolist(), strict=True):
        histogram.counts[index] = count
    histogram.total_count = len(micros)
    histogram.min_value, histogram.max_value = int(micros.min()), int(micros.max())
    return histogram


def write_histograms(
    directory: Path, requests: pa.Table, splits: Sequence[Split], duration_seconds: float
) -> None:
    """Write a log and a table for response and service time of each operation.

    Raises:
        OSError: The directory cannot be written.
    """
    directory.mkdir(exist_ok=True)
    for whole in wholes_of(requests):
        parts = [split for split in splits if split.operation == whole.operation]
        for kind in ("response", "service"):
            path = directory / f"{whole.operation}-{kind}"
            _write(path, whole, parts, f"{kind}_seconds", duration_seconds)


def _write(
    path: Path, of_all: Split, parts: Sequence[Split], field: str, duration_seconds: float
) -> None:
    whole = histogram_of(getattr(of_all, field))
    lines = [_line("", whole, duration_seconds)]
    for split in parts:
        histogram = histogram_of(getattr(split, field))
        if histogram.total_count:
            lines.append(_line(f"Tag={_tag(split)},", histogram, duration_seconds))
    path.with_suffix(".hlog").write_text(_HEADING + "".join(lines))
    with path.with_suffix(".hgrm").open("wb") as table:
        whole.output_percentile_distribution(table, 1000.0)


def _line(tag: str, histogram: Any, duration_seconds: float) -> str:  # noqa: ANN401
    largest = histogram.max_value / 1000
    encoded = histogram.encode().decode()
    return f"{tag}0.000,{duration_seconds:.3f},{largest:.3f},{encoded}\n"


def _tag(split: Split) -> str:
    """Return a split's name; tags of the log have neither commas nor blanks."""
    named = {
        "outcome": split.outcome,
        "family": split.family,
        "tenant": split.tenant,
        "up_to_bytes": split.up_to_bytes,
    }
    words = ";".join(f"{name}={value}" for name, value in named.items())
    return words.replace(",", "_").replace(" ", "_")


def forget_histograms(directory: Path) -> None:
    """Remove the histograms of an older run.

    Raises:
        OSError: The directory holds something else, or cannot be written.
    """
    if directory.is_dir():
        for path in (*directory.glob("*.hlog"), *directory.glob("*.hgrm")):
            path.unlink()
        directory.rmdir()
