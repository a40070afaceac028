"""Answered lists are shown beside the share of a real broker's JVM."""

from html import escape
from pathlib import Path

import pytest

from loadgen.places.sampling import kept_samples
from loadgen.report.page import run_page
from loadgen.results.files import survival, write_files
from loadgen.results.results import Results
from loadgen.results.vocabulary import figure_of
from tests.support.runs.recorded_run import record_run, request, sample

MB = 2.0**20
ANSWERS = [request(client=n, outcome="answered" if n else "refused") for n in range(4)]
PAGE = """jvm_memory_bytes_used{cluster="c",area="heap"} 1.0
jvm_memory_bytes_used{cluster="c",area="nonheap"} 2.0
jvm_memory_bytes_max{cluster="c",area="heap"} 3.0
jvm_memory_bytes_max{cluster="c",area="nonheap"} -1.0
jvm_memory_direct_bytes_used{cluster="c"} 4.0
jvm_memory_direct_bytes_max{cluster="c"} 5.0
"""


def told(heap: float, direct: float, **limits: float) -> list[dict[str, object]]:
    peaks = {"heap.used": heap, "direct.used": direct, **limits}
    return [
        sample(f"jvm.{name}", at, value * MB * at)
        for name, value in peaks.items()
        for at in (0.5, 1.0)
    ]


def test_the_metrics_page_of_a_pulsar_broker_yields_all_jvm_figures() -> None:
    figures = {figure_of(metric): value for metric, value in kept_samples(PAGE)}
    figures.pop(None)
    assert figures == {
        "jvm.heap.used": 1.0, "jvm.heap.limit": 3.0, "jvm.direct.used": 4.0,
        "jvm.direct.limit": 5.0,
    }  # fmt: skip


def test_readme_and_page_report_the_same_share_of_jvm_memory(tmp_path: Path) -> None:
    limits = {"heap.limit": 1024.0, "direct.limit": 2048.0}
    with Results.open(record_run(tmp_path, ANSWERS, samples=told(512, 1536, **limits))) as run:
        write_files(run)
        sentence, page = survival(run), run_page(run)
    assert sentence == (
        "75 % of the requests were answered, and meanwhile the broker's JVM had heap memory at "
        "most 512 MB, 50 % of -Xmx (1,024 MB), direct memory at most 1,536 MB, 75 % of "
        "-XX:MaxDirectMemorySize (2,048 MB)."
    )
    assert escape(sentence) in page
    assert sentence in (tmp_path / "README.md").read_text()


@pytest.mark.parametrize("limits", [{}, {"heap.limit": -1.0}])
def test_a_missing_or_negative_jvm_limit_is_reported_as_not_known(
    limits: dict[str, float], tmp_path: Path
) -> None:
    with Results.open(record_run(tmp_path, ANSWERS, samples=told(1, 2, **limits))) as run:
        assert "at most 1.0 MB, -Xmx not known" in survival(run)


def test_a_server_without_a_jvm_has_no_report_of_jvm_memory(tmp_path: Path) -> None:
    with Results.open(record_run(tmp_path, ANSWERS, samples=[sample("resident", 0, 1.0)])) as run:
        assert survival(run) == ""
