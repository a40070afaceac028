"""Error messages of Java 17 and RE2/J for common mistakes, recorded."""

import pytest

from broker.patterns.errors import InvalidPatternError
from broker.patterns.pattern import RegexImplementation, compile_pattern

JDK, RE2J = RegexImplementation.JDK, RegexImplementation.RE2J
FALLBACK = RegexImplementation.RE2J_WITH_JDK_FALLBACK


def refused(pattern: str, implementation: RegexImplementation) -> InvalidPatternError:
    with pytest.raises(InvalidPatternError) as caught:
        compile_pattern(pattern, implementation)
    return caught.value


@pytest.mark.parametrize("implementation", [JDK, FALLBACK])
@pytest.mark.parametrize(
    ("pattern", "description"),
    [
        ("(((", "Unclosed group near index 3\n((("),
        ("(a|(b", "Unclosed group near index 5\n(a|(b"),
        ("(?!a", "Unclosed group near index 4\n(?!a"),
        ("a)", "Unmatched closing ')' near index 0\na)\n^"),
        (")", "Unmatched closing ')'\n)"),
        ("*a", "Dangling meta character '*' near index 0\n*a\n^"),
        ("a|*b", "Dangling meta character '*' near index 2\na|*b\n  ^"),
        ("(*a)", "Dangling meta character '*' near index 1\n(*a)\n ^"),
        ("(?!+a)", "Dangling meta character '+' near index 3\n(?!+a)\n   ^"),
        ("[abc", "Unclosed character class near index 3\n[abc\n   ^"),
        ("[^]", "Unclosed character class near index 2\n[^]\n  ^"),
        ("[z-a]", "Illegal character range near index 3\n[z-a]\n   ^"),
        ("abc\\q", "Illegal/unsupported escape sequence near index 4\nabc\\q\n    ^"),
        ("ab\\", "Unexpected internal error near index 3\nab\\"),
    ],
)
def test_a_syntax_error_is_described_as_in_java(pattern, description, implementation) -> None:
    error = refused(pattern, implementation)
    assert error.description == description
    assert str(error) == f"Invalid topics pattern: {description}"
    assert error.java_text == f"java.util.regex.PatternSyntaxException: {description}"


@pytest.mark.parametrize(
    ("pattern", "mistake"),
    [
        ("(((", "missing closing ): `(((`"),
        ("[abc", "missing closing ]: `[abc`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("(?!a)", "invalid or unsupported Perl syntax: `(?!`"),
        ("abc\\q", "invalid escape sequence: `\\q`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("ab\\", "trailing backslash at end of expression"),
    ],
)
def test_without_the_fallback_a_syntax_error_is_described_as_in_re2j(pattern, mistake) -> None:
    error = refused(pattern, RE2J)
    assert str(error) == f"Invalid topics pattern: error parsing regexp: {mistake}"
    assert error.java_text.startswith("com.google.re2j.PatternSyntaxException: error parsing")


def test_syntax_that_java_refuses_is_refused_although_the_engine_accepts_it() -> None:
    for pattern in (
        r"(?!a)\p{Foo}",
        "(?!a)(?P<n>b)",
        "(?!a)(?#b)",
        r"(?!a)\N",
        "(?!a)(?<n>a)(?<n>b)",
    ):
        error = refused(pattern, FALLBACK)
        assert error.java_text.startswith("java.util.regex.PatternSyntaxException: ")


def test_a_pattern_of_an_unknown_domain_is_an_illegal_argument() -> None:
    error = refused("foo://t/ns/.*", FALLBACK)
    assert str(error) == error.description == "Does not support topic domain: foo"
    assert error.java_text == f"java.lang.IllegalArgumentException: {error}"
