"""Each catalogued case of upstream is named by a test, so that no case is lost."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

UNIT = Path(__file__).parent
INTEGRATION = UNIT.parent / "integration"
MODULES = [
    UNIT / "limiter" / "semaphore" / "test_async_semaphore_catalogue.py",
    UNIT / "limiter" / "memory" / "test_dual_limiter_catalogue.py",
    UNIT / "limiter" / "memory" / "test_size_estimate.py",
    UNIT / "broker" / "listing" / "test_handler_catalogue.py",
    UNIT / "limiter" / "flow" / "test_flow_control_cooldown.py",
    UNIT / "proto" / "transport" / "test_connection_flow_control.py",
    UNIT / "broker" / "messages" / "test_topic.py",
    INTEGRATION / "connection" / "test_controlled_peer.py",
]
# The only case is known by description alone.
THROTTLING = "PIP-434 part 2"
NAMED = re.compile(r"Upstream: (\w+Test|PIP-434 part 2) cases? (\d+(?:(?:, | and )\d+)*)")


def cases_named() -> Iterator[tuple[str, int]]:
    """The upstream cases in the docstrings of tests."""
    for module in MODULES:
        for node in ast.parse(module.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                for test_class, numbers in NAMED.findall(ast.get_docstring(node) or ""):
                    assert node.name.startswith("test_"), node.name
                    yield from ((test_class, int(number)) for number in re.findall(r"\d+", numbers))


@pytest.mark.parametrize(
    ("test_class", "count", "not_here"),
    [
        ("AsyncSemaphoreImplTest", 30, set()),
        ("AsyncDualMemoryLimiterImplTest", 29, set()),
        # A null permit; test_dual_limiter_catalogue says why the case is missing.
        ("AsyncDualMemoryLimiterUtilTest", 18, {6}),
        ("TopicListSizeResultCacheTest", 14, set()),
        ("PulsarFlowControlHandlerTest", 2, set()),
        ("PatternConsumerBackPressureTest", 1, set()),
        ("TimedSingleThreadRateLimiterTest", 22, set()),
        (THROTTLING, 1, set()),
    ],
)
def test_tests_name_every_upstream_case(test_class: str, count: int, not_here: set[int]) -> None:
    named = {number for name, number in cases_named() if name == test_class}
    assert named == set(range(1, count + 1)) - not_here


def test_tests_name_cases_only_of_known_upstream_classes() -> None:
    assert {test_class for test_class, _ in cases_named()} == {
        "AsyncSemaphoreImplTest",
        "AsyncDualMemoryLimiterImplTest",
        "AsyncDualMemoryLimiterUtilTest",
        "TopicListSizeResultCacheTest",
        "PulsarFlowControlHandlerTest",
        "PatternConsumerBackPressureTest",
        "TimedSingleThreadRateLimiterTest",
        THROTTLING,
    }
