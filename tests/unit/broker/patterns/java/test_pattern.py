"""Patterns as read by Java 17; every row was recorded with Java."""

import pytest
import regex

from broker.patterns.errors import InvalidPatternError, JavaSyntaxError
from broker.patterns.java.pattern import translated


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"\Qa.b\E(?=c).", "a.bc", "axbc"),
        (r"\Qa+\E+(?!x)", "a++", "a+x"),
        (r"[\Qa-\E](?!x)", "-", "b"),
        ("[a-z&&[^b]](?!x)", "c", "b"),
        ("[a-c&&b-d](?!x)", "b", "a"),
        ("[a[0-3]](?!x)", "2", "4"),
        ("[]a](?!x)", "]", "b"),
        ("[a-](?!x)", "-", "b"),
        ("[^a[b]](?!x)", "c", "b"),
        (r"\h(?!x)", "\t", "\n"),
        (r"\H\V(?!x)", "ab", "a\n"),
        (r"\R(?!x)", "\r\n", "ab"),
        (r"(a)(b)\2(?!x)", "abb", "aba"),
        (r"a\8?(?!x)", "a", "a8"),
        (r"(?<n>a)\k<n>(?!x)", "aa", "ab"),
        ("a(?i)b|c(?!x)", "C", "A"),
        ("(?i:a)b(?!x)", "Ab", "AB"),
        ("(?i)\u00e4(?!x)", "\u00e4", "\u00c4"),
        ("(?iu)\u00e4(?!x)", "\u00c4", "a"),
        (r"(?i)\p{Lu}(?!x)", "a", "1"),
        ("(?x) a b # c\n(?!x)", "ab", "a b"),
        (r"\x{61}\u0062\0143\t(?!x)", "abc\t", "abc"),
        (r"\cB\e(?!x)", "\x02\x1b", "B"),
        (r"(?i)\p{javaLowerCase}(?!x)", "A", "1"),
        (r"\p{Alpha}\P{Digit}(?!x)", "aa", "a1"),
        (r"\p{IsLatin}\p{InGreek}\pN(?!x)", "a\u03b11", "a11"),
        ("(?>a+)b(?!x)", "aab", "aa"),
        ("a++(?!x)", "aa", "ab"),
        ("a{2}{3}(?!x)", "aa", "aaaaaa"),
        ("^*a$(?!x)", "a", "b"),
        (r"a\Z\n(?!x)", "a\n", "a"),
        ("a.(?!x)", "ab", "a\u2028"),
        ("(?s)a.(?!x)", "a\n", "a"),
        ("(?<=a*)b(?!x)", "b", "a"),
        ("(?=a)(?:ab|a{1,2}+)", "ab", "aaa"),
        (r"\uD834\uDD1E(?!x)", "\U0001d11e", "a"),
        (r"[\uD834\uDD1E-\uD834\uDD20](?!x)", "\U0001d11f", "a"),
        (r"(?:\uD834|a)(?!x)", "a", "\U0001d11e"),
        ("(?i:[\u00df-\u00e9])(?!x)", "\u00e9", "\u00c9"),
        ("(?i:[Z-a])(?!x)", "A", "b"),
        ("(?iu:[\u00df-\u00e9])(?!x)", "\u00c9", "a"),
        ("(?U)(?i:\u00c9)(?!x)", "\u00e9", "e"),
        ("(?iu)(?-U)\u00c9(?!x)", "\u00c9", "\u00e9"),
        (r"(?iU)(?-u)\w(?!x)", "\u00e9", "-"),
        (r"\N{LATIN SMALL LETTER A}(?!x)", "a", "b"),
        (r"[\N{LATIN SMALL LETTER A}-c](?!x)", "b", "d"),
        ("(?x)a # \r b\n(?!x)", "ab", "a"),
        ("(?xd)a # \r b\n(?!x)", "a", "ab"),
    ],
)
def test_a_translated_pattern_matches_as_in_java(pattern: str, matching: str, other: str) -> None:
    compiled = regex.compile(translated(pattern))
    assert compiled.fullmatch(matching)
    assert not compiled.fullmatch(other)


@pytest.mark.parametrize(
    ("pattern", "what", "index"),
    [
        ("(?P<n>a)", "Unknown inline modifier", 2),
        ("(?#c)a", "Unknown inline modifier", 2),
        ("(?<1>a)", "capturing group name does not start with a Latin letter", 3),
        ("(?<n>a)(?<n>b)", "Named capturing group <n> is already defined", 11),
        (r"\k<n>", "named capturing group <n> does not exist", 4),
        ("a{b}", "Illegal repetition", 2),
        ("a{,2}", "Illegal repetition", 2),
        ("a{2,1}", "Illegal repetition range", 5),
        ("a**", "Dangling meta character '*'", 2),
        ("(?i)*", "Dangling meta character '*'", 4),
        (r"\p{Foo}", "Unknown character property name {Foo}", 6),
        (r"\p{IsA+}", "Unknown character property name {IsA+}", 7),
        (r"\p{In.*}", "Unknown character property name {In.*}", 7),
        (r"[\p{Is|b}]", "Unknown character property name {Is|b}", 8),
        (r"\p{Is^Latin}", "Unknown character property name {Is^Latin}", 11),
        (r"\p{IsLatin }", "Unknown character property name {IsLatin }", 11),
        (r"\p{Is_Latin}", "Unknown character property name {Is_Latin}", 11),
        (r"\p{SC=Lat+}", "Unknown Unicode property {name=<sc>, value=<Lat+>}", 10),
        (r"\N", "Illegal character name escape sequence", 2),
        (r"\N{x", "Unclosed character name escape sequence", 3),
        (r"\N{foo}b", "Unknown character name [foo]", 6),
        (
            r"\N{LATIN CAPITAL LETTER A WITH MACRON AND GRAVE}",
            "Unknown character name [LATIN CAPITAL LETTER A WITH MACRON AND GRAVE]",
            47,
        ),
        (r"[a-\d]", "Illegal character range", 4),
        (r"[a-\W]", "Illegal character range", 4),
        (r"[a-\p{L}]", "Illegal/unsupported escape sequence", 4),
        (r"\uD834\u00", "Illegal Unicode escape sequence", 10),
        (r"\x{110000}", "Hexadecimal codepoint is too big", 8),
        (r"\u12", "Illegal Unicode escape sequence", 4),
        ("(?<=(a|b)*)c", "Look-behind group does not have an obvious maximum length", 9),
        ("[&&]", "Bad class syntax", 2),
    ],
)
def test_a_syntax_error_has_the_description_and_index_of_java(
    pattern: str, what: str, index: int
) -> None:
    with pytest.raises(JavaSyntaxError) as caught:
        translated(pattern)
    assert (caught.value.what, caught.value.index) == (what, index)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?!x)(?:a{1000}){1000}",
        "((a){999}){999}",
        "(?=x)(((a|b){99}){99}){99}",
        "(?=x)a{2147483647}",
        "(?!x)(?:(?=(?!(?<=a{99}))){99}[^b]){99}",
        "(?!x)(?:a{2147483647}){2147483647}" * 300,
    ],
)
def test_a_pattern_with_too_many_repetitions_is_refused_before_compilation(pattern: str) -> None:
    with pytest.raises(InvalidPatternError, match="repeats too much"):
        translated(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?!x)a{0,2147483647}",
        "(?!x)a{99,}",
        "(?!x).{1000}",
        "(?!x)(?:[a-z-]{0,999}/){99}",
        "(?!x)[abcdefghijklmnopqrstuvwxyz]{999}",
    ],
)
def test_repetitions_that_need_no_expansion_are_accepted(pattern: str) -> None:
    assert regex.compile(translated(pattern), cache_pattern=False)


@pytest.mark.parametrize("pattern", ["()(?!x)", "(?=)a", "(?<=)a", "(?:)a", "((?i))a", "(?>)a"])
def test_an_empty_group_is_never_written(pattern: str) -> None:
    """The engine repeats an empty group in quadratic time."""
    written = translated(pattern)
    assert regex.search(r"\((?:\?(?:[:=!>]|<[=!]))?\)", written.replace("(?!x)", "")) is None


def test_a_lone_surrogate_is_written_as_an_encodable_escape() -> None:
    assert translated(r"\uD834(?!x)").encode() == rb"\ud834(?!x)"


def test_a_character_class_may_have_any_number_of_members() -> None:
    """Nested groups, each in another, would exceed the engine's nesting limit."""
    members = "".join(chr(0x4E00 + 2 * index) for index in range(1_000))
    compiled = regex.compile(translated(f"[{members}](?!x)"), cache_pattern=False)
    assert compiled.fullmatch(members[-1])
    assert not compiled.fullmatch(chr(0x4E01))
