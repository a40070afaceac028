"""Patterns as applied by a real broker."""

from collections import OrderedDict
from itertools import combinations, compress

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.patterns import pattern as patterns
from broker.patterns.columns import _searched
from broker.patterns.errors import InvalidPatternError
from broker.patterns.literal_search import taken_apart
from broker.patterns.pattern import (
    RE2_MEMORY_BYTES,
    Backtracking,
    LinearTime,
    RegexImplementation,
    _compiled_for_names,
    compile_pattern,
    compiled_before,
    remove_domain_scheme,
)
from proto.topic_hash import java_order
from tests.support.examples import many
from tests.support.masks import mask_of

FALLBACK = RegexImplementation.RE2J_WITH_JDK_FALLBACK
ENGINES = pytest.mark.parametrize(
    "implementation", [RegexImplementation.RE2J, RegexImplementation.JDK, FALLBACK]
)
GOLD = [
    f"persistent://public/gold/{name}"
    for name in (
        "alpha-1",
        "alpha-2",
        "beta-1",
        "gamma.x",
        "parted-partition-0",
        "parted-partition-1",
        "parted-partition-2",
    )
]


def kept(
    pattern: str, names: list[str], implementation: RegexImplementation = FALLBACK
) -> list[str]:
    encoded = [name.encode() for name in names]
    mask = mask_of(compile_pattern(pattern, implementation), encoded)
    return list(compress(names, mask))


@pytest.mark.parametrize(
    ("pattern", "without_scheme"),
    [
        ("persistent://t/ns/.*", "t/ns/.*"),
        ("non-persistent://t/ns/.*", "t/ns/.*"),
        ("^persistent://t/ns/.*", "^t/ns/.*"),
        ("t/ns/.*", "t/ns/.*"),
        ("persistent://t/ns/a://b", "t/ns/a"),
    ],
)
def test_removing_the_domain_scheme_keeps_the_anchor_before_the_scheme(
    pattern, without_scheme
) -> None:
    assert remove_domain_scheme(pattern) == without_scheme


@pytest.mark.parametrize("domain", ["foo", "", "(persistent|non-persistent)"])
def test_a_pattern_of_an_unknown_domain_is_refused(domain: str) -> None:
    with pytest.raises(InvalidPatternError) as caught:
        compile_pattern(f"{domain}://t/ns/.*", FALLBACK)
    assert str(caught.value) == f"Does not support topic domain: {domain}"


@pytest.mark.parametrize("pattern", ["persistent://", "^persistent://", "://", "persistent://://"])
def test_a_pattern_that_ends_after_its_domain_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidPatternError, match="nothing follows ://") as caught:
        compile_pattern(pattern, FALLBACK)
    assert caught.value.java_text == (
        "java.lang.ArrayIndexOutOfBoundsException: Index 1 out of bounds for length 1"
    )


@ENGINES
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (".*", GOLD),
        ("persistent://public/gold/.*", GOLD),
        ("non-persistent://public/gold/alpha.*", GOLD[:2]),
        ("public/gold/alpha", []),
        ("^public/gold/alpha-\\d$", GOLD[:2]),
        ("public/gold/(alpha|beta)-1", [GOLD[0], GOLD[2]]),
        ("public/gold/alpha-1|public/gold/beta-1", [GOLD[0], GOLD[2]]),
        ("persistent://public/gold/parted", GOLD[4:]),
        ("public/gold/parted-partition-1", []),
        ("", []),
        ("(?i)PUBLIC/GOLD/ALPHA-1", GOLD[:1]),
    ],
)
def test_the_whole_path_without_its_partition_must_match(implementation, pattern, expected) -> None:
    assert kept(pattern, GOLD, implementation) == expected


@ENGINES
def test_names_that_are_not_ascii_match_by_character(implementation: RegexImplementation) -> None:
    names = ["persistent://t/ns/tópico", "non-persistent://t/ns/t\U0001f600pico"]
    assert kept("t/ns/t.pico", names, implementation) == names


@ENGINES
def test_only_a_java_int_suffix_counts_as_a_partition_number(
    implementation: RegexImplementation,
) -> None:
    largest, larger, padded = (
        "persistent://t/ns/x-partition-2147483647",
        "persistent://t/ns/x-partition-2147483648",
        "persistent://t/ns/x-partition-01",
    )
    names = [largest, larger, padded]
    assert kept("t/ns/x", names, implementation) == [largest]
    assert kept("t/ns/x-partition-.*", names, implementation) == [larger, padded]


@settings(max_examples=many(200), deadline=None)
@given(
    st.one_of(st.integers(0, 2**32), st.sampled_from([2**31 - 1, 2**31])).map(str)
    | st.from_regex(r"[0-9]{1,11}", fullmatch=True)
)
def test_both_engines_agree_on_partition_suffixes(index: str) -> None:
    names = [f"persistent://t/ns/x-partition-{index}"]
    linear = kept("t/ns/x", names, RegexImplementation.RE2J)
    assert linear == kept("t/ns/x", names, RegexImplementation.JDK)


def test_look_around_falls_back_to_the_backtracking_engine() -> None:
    assert kept("persistent://public/gold/(?!alpha).*", GOLD) == GOLD[2:]
    assert kept(r"public/gold/(.)\w+(-1|\.x)", GOLD) == [GOLD[0], GOLD[2], GOLD[3]]


def test_without_the_fallback_look_around_is_refused() -> None:
    with pytest.raises(InvalidPatternError, match="invalid or unsupported Perl syntax"):
        compile_pattern("public/gold/(?!alpha).*", RegexImplementation.RE2J)


@pytest.mark.parametrize("pattern", [r"public/gold/\Qgamma.x", r"public/gold/\Qgamma.x\E"])
def test_a_quotation_may_lack_its_end(pattern: str) -> None:
    assert kept(pattern, [*GOLD, "persistent://public/gold/gamma-x"]) == [GOLD[3]]


def test_a_pattern_cannot_escape_the_match_of_the_whole_path() -> None:
    with pytest.raises(InvalidPatternError):
        compile_pattern("nothing)|(?:.*", RegexImplementation.RE2J)


def test_a_slice_of_a_column_is_matched_independently_of_the_rest() -> None:
    # A name with a line break, which a pattern's ``.`` does not match
    paths = ["t/n/1x", "t/n/1\nx", "t/n/2x", "t/m/x"]
    pattern, column = LinearTime("t/n/.*x"), pa.array(paths)
    for begin, end in combinations(range(len(paths) + 1), 2):
        found = pattern.matching(column.slice(begin, end - begin))
        assert found == bytes([1, 0, 1, 0][begin:end])
    # Topics outside the part cost the part nothing either
    search = taken_apart("t/n/.*x")
    assert search is not None
    assert _searched(column.slice(2), search) is not None


def test_the_linear_engine_completes_nested_repetitions_on_a_long_name() -> None:
    assert kept("t/ns/(?:(?:a|a)*)*b", ["persistent://t/ns/" + "a" * 40]) == []


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("t/n/x", "t/n/x-partition-0"),
        ("t/n/[a-x]", "t/n/x-partition-12"),
        ("t/n/x(!!)?", "t/n/x-partition-0"),
        ("t/n/(a|x~)", "t/n/x~-partition-0"),
        ("t/n/.", "t/n/\uffff"),
        ("t/n/\u00e9.", "t/n/\u00e9\U0010ffff"),
        ("(?i)T/n/K", "t/n/\u212a"),
        (".*", "\U0010ffff-partition-0"),
    ],
)
def test_every_match_lies_within_the_range_of_the_prefix(pattern, path) -> None:
    compiled = LinearTime(pattern)
    key = java_order(path.encode())
    assert mask_of(compiled, [b"persistent://" + path.encode()]) == b"\1"
    assert compiled.low <= key <= compiled.high


@pytest.mark.parametrize(
    "pattern",
    [
        "t/n/.*a|t/m/.*b",
        "t/n/.*a|b",
        "t/n/.*+",
        "t/n/.*?a",
        "t/n/.*^a",
        r"t/n/.*\ba",
        r"t/n/.*\Qa.*",
        "(?i)t/n/.*a",
        "t/n/.*(?i)a",
        "t/(n|m)/.*a",
        "t/n/.*a$b",
        "t/n/a",
        "t/n/.*(a|(b|c))",
        "t/n/.*[[:alpha:]]",
        "t/n/é.*a",
    ],
)
def test_a_pattern_whose_meaning_might_change_is_not_split(pattern: str) -> None:
    assert taken_apart(pattern) is None


@pytest.mark.parametrize(
    ("pattern", "beginning", "rest"),
    [
        ("t/n/.*", "t/n/", r"(?:)\z"),
        ("t/n/.*-7", "t/n/", r"(?:-7)\z"),
        ("t/n/.*-7.*", "t/n/", "-7"),
        (r"t/n/.*-7\.*", "t/n/", r"(?:-7\.*)\z"),
        (r"t/n/a\.b.*(x|y)[0-9]{2}$", "t/n/a.b", r"(?:(x|y)[0-9]{2})\z"),
        (".*", "", r"(?:)\z"),
    ],
)
def test_a_pattern_is_split_into_a_literal_prefix_and_a_searched_rest(
    pattern, beginning, rest
) -> None:
    assert taken_apart(pattern) == (beginning, rest)


def test_the_range_of_a_prefix_excludes_names_with_another_prefix() -> None:
    compiled = LinearTime("t/n/orders-7.*")
    assert compiled.low > b"t/n/orders-6zzz"
    assert compiled.high < b"t/n/orders-8"


def test_the_same_pattern_is_compiled_once() -> None:
    assert compile_pattern("a/b/c", FALLBACK) is compile_pattern("a/b/c", FALLBACK)


def test_the_least_recently_used_compiled_pattern_is_evicted(monkeypatch) -> None:
    monkeypatch.setattr(patterns, "_compiled", OrderedDict())
    monkeypatch.setattr(patterns, "MAX_COMPILED", 2)
    oldest = compile_pattern("a/b/oldest", FALLBACK)
    compile_pattern("a/b/unused", FALLBACK)
    compile_pattern("a/b/oldest", FALLBACK)
    compile_pattern("a/b/newest", FALLBACK)
    assert compiled_before("a/b/oldest", FALLBACK) is oldest
    assert compiled_before("a/b/unused", FALLBACK) is None
    assert len(patterns._compiled) == 2


LARGE = [r"\pL{99}", r"[\pL]{99}", r"(\pL|\d){60}", r"(?i)\pL{90}"]


@pytest.mark.parametrize("pattern", LARGE)
def test_a_pattern_too_large_for_re2_uses_the_backtracking_engine(pattern: str) -> None:
    """The backtracking engine runs in a separate process."""
    assert isinstance(compile_pattern(pattern, FALLBACK), Backtracking)
    with pytest.raises(InvalidPatternError, match="too large"):
        compile_pattern(pattern, RegexImplementation.RE2J)


@pytest.mark.parametrize("pattern", [".{1000}", "(?i)[a-z0-9]{1000}", r"\w{1000}", r"\pL{5}"])
def test_patterns_of_ordinary_size_are_compiled_by_re2(pattern: str) -> None:
    assert isinstance(compile_pattern(pattern, RegexImplementation.RE2J), LinearTime)


def test_patterns_for_names_are_compiled_without_groups_and_with_more_memory() -> None:
    compiled = _compiled_for_names(r"\A(?:([^a]?){100}.*)\z")
    assert compiled.groups == 0
    assert compiled.options.max_mem > RE2_MEMORY_BYTES
    assert LinearTime("a/b/(x|y)+").matching([b"a/b/xy", b"a/b/z"]) == b"\1\0"
