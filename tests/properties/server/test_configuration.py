"""For any file content a configuration is made or every problem reported."""

from collections.abc import Callable
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.configuration.config import BrokerConfig
from broker.configuration.config import known_keys as broker_keys
from proxy.config import ProxyConfig
from proxy.config import known_keys as proxy_keys
from server.configuration.file import parse_properties
from server.errors import ConfigError

T = TypeVar("T")
NAMES = sorted({known.key for known in (*broker_keys(), *proxy_keys())})
VALUES = st.one_of(
    st.text(max_size=20),
    st.integers(-(2**65), 2**65).map(str),
    st.floats().map(str),
    st.sampled_from(
        ["true", "null", "[]", "[a, b]", "Optional[1]", "Optional.empty", "64k", "pulsar://a:1",
         "http://b", "memory:local", "sqlite:///x", "fair", "pulsar", "6650-6651", "*"]
    ),
)  # fmt: skip
PROPERTIES = st.dictionaries(st.one_of(st.sampled_from(NAMES), st.text(max_size=20)), VALUES)


def outcome(make: Callable[[], T]) -> T | ConfigError:
    """Return the configuration, or the only permitted error."""
    try:
        return make()
    except ConfigError as error:
        return error


@given(PROPERTIES)
@pytest.mark.parametrize("model", [BrokerConfig, ProxyConfig])
def test_any_properties_make_a_configuration_or_report_problems(model, properties) -> None:
    made = outcome(lambda: model.from_properties(properties))
    if isinstance(made, ConfigError):
        assert made.problems
    else:
        assert made.flow.rules.marks.low_bytes <= made.flow.rules.marks.high_bytes


@given(st.text())
def test_any_text_is_parsed_or_its_invalid_lines_are_reported(text: str) -> None:
    values = outcome(lambda: parse_properties(text, "broker.conf"))
    if isinstance(values, ConfigError):
        assert all(problem.startswith("broker.conf, line ") for problem in values.problems)
    else:
        assert all(values)


@given(st.dictionaries(st.sampled_from(NAMES), st.text()))
def test_an_escaped_file_is_read_back_unchanged(values: dict[str, str]) -> None:
    # Every character as an escape, which is always allowed
    def escaped(text: str) -> str:
        units = text.encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))

    written = "\n".join(f"{key}={escaped(value)}" for key, value in values.items())
    assert parse_properties(written, "broker.conf") == values
