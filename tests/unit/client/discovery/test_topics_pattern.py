import re

import pytest

from client.discovery.topics_pattern import _COMPILED, TopicsPattern, _compiled, topics_of
from client.exceptions import InvalidConfiguration

BASE = "persistent://public/default/"


@pytest.mark.parametrize(
    ("text", "long"),
    [
        ("t-.*", BASE + "t-.*"),
        ("red/blue/t-.*", "persistent://red/blue/t-.*"),
        (BASE + "t-.*", BASE + "t-.*"),
        ("^" + BASE + "t-.*$", BASE + "t-.*$"),
        ("non-persistent://public/default/[a/b]+", "non-persistent://public/default/[a/b]+"),
    ],
)
def test_a_pattern_is_expanded_to_its_full_topic_name(text, long):
    assert TopicsPattern(text).text == long


@pytest.mark.parametrize(
    ("name", "matches"),
    [
        (BASE + "t-1", True),
        (BASE + "t-1-partition-3", True),
        ("non-persistent://public/default/t-1", True),
        (BASE + "at-1", False),
        (BASE + "t-12", False),
        ("persistent://public/other/t-1", False),
    ],
)
def test_the_whole_name_without_partition_must_match(name, matches):
    assert TopicsPattern(BASE + r"t-\d").matches(name) is matches


@pytest.mark.parametrize(
    ("expression", "name"),
    [("ab*", "a"), ("ab?c", "ac"), ("ab{0}", "a"), ("ab|cd", "cd"), ("ab+", "abb"), ("a.b", "axb")],
)
def test_the_literal_prefix_of_a_pattern_hides_no_match(expression, name):
    assert TopicsPattern(BASE + expression).matches(BASE + name)


def test_the_flags_of_a_compiled_pattern_apply_to_the_local_name_here_and_at_the_broker():
    pattern = TopicsPattern.of(re.compile(BASE + "t-.*", re.IGNORECASE))
    assert pattern.text == BASE + "(?i:t-.*)"
    assert pattern.matches(BASE + "T-1")
    assert not TopicsPattern.of(re.compile(BASE + "t-.*")).matches(BASE + "T-1")


def test_a_flag_unknown_to_brokers_is_refused():
    with pytest.raises(InvalidConfiguration, match=r"cannot have re\.VERBOSE"):
        TopicsPattern.of(re.compile("t-.*", re.VERBOSE))


def test_a_pattern_that_re2_does_not_support_is_matched_by_another_engine():
    pattern = TopicsPattern(BASE + "(?!t-).*")
    assert pattern.matches(BASE + "u-1")
    assert not pattern.matches(BASE + "t-1")


def test_a_pattern_whose_matching_takes_too_long_is_refused():
    pattern = TopicsPattern(BASE + r"(?=a)(a+)+\1b")
    with pytest.raises(InvalidConfiguration, match="takes more than"):
        pattern.matches(BASE + "a" * 4_000)


@pytest.mark.parametrize("text", ["a/b", "a b/c/d", "a//d", "persistent://x", "red/blue/", "t-("])
def test_an_invalid_pattern_is_refused(text):
    with pytest.raises(InvalidConfiguration):
        TopicsPattern(text) if text != "a/b" else TopicsPattern("persistent://a/b")


def test_partitions_of_a_topic_count_as_a_single_topic():
    assert topics_of([BASE + "t-partition-0", BASE + "t-partition-1", BASE + "u"]) == {
        BASE + "t",
        BASE + "u",
    }


def test_the_cache_of_compiled_patterns_is_bounded_and_every_pattern_matches():
    patterns = [TopicsPattern(f"group-{number}-.*") for number in range(200)]
    for number, pattern in enumerate(patterns):
        assert pattern.matches(f"{BASE}group-{number}-x")
        assert not pattern.matches(f"{BASE}group-x")
    assert _compiled.cache_info().currsize == _COMPILED
