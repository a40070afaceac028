"""Random patterns: accepted by both of Java's engines, by a single engine, or by neither."""

from random import Random

from tests.differential.cases import NAMESPACE
from tests.differential.odd_names import ODD_WORDS, WORDS, World

PREFIXES = (
    f"persistent://{NAMESPACE}/",
    f"persistent://{NAMESPACE}/",
    f"{NAMESPACE}/",
    f"{NAMESPACE}/",
    f"non-persistent://{NAMESPACE}/",
    f"^persistent://{NAMESPACE}/",
    ".*/",
    "",
    "public/[^/]+/",
    r"\Qpublic\E/.*/",
    "[a-z]+/.+/",
    "(?i)PUBLIC/.*",
)
ODD_PREFIXES = (
    f"PERSISTENT://{NAMESPACE}/",
    f"foo://{NAMESPACE}/",
    ".*://",
    "persistent://",
    "://",
    f"persistent://persistent://{NAMESPACE}/",
    f"(persistent://{NAMESPACE}/",
    "(?:non-)?persistent://public/.*/",
)
CLASSES = (
    r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", ".", "[a-z]", "[^a]", "[a-z0-9_.-]", "[^/]", r"[\d-]",
    r"[\w.]", "[]a]", "[a-]", r"\p{L}", r"\p{Lu}", r"\pN", r"\P{L}", r"\p{Greek}", "[[:alpha:]]",
    r"\p{Alpha}", r"\p{Lower}", r"[a-z&&[^b]]", r"[a[b-d]]", r"\p{IsAlphabetic}", r"\h", r"\R",
    r"\x61", r"\x{61}", r"\u0061", r"\t", r"\.", r"\-", r"\/", r"\077", r"\cA", r"\e", r"\X", r"\N",
    r"\p{IsLatin}", r"\p{InGreek}", r"\v", r"\H", r"\V", "[[:^digit:]]", r"\0101", r"[\Qa-\E]",
)  # fmt: skip
QUANTIFIERS = ("*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}", "{2,3}?")
OF_GROUPS = ("?", "{2}", "{0,2}", "??", "{1,2}+", "?+", "{1}", "*+", "++")
"""No exponential backtracking: a real broker would never answer."""
JAVA_QUANTIFIERS = ("*+", "++", "?+", "{1,2}+")
ANCHORS = ("^", "$", r"\A", r"\z", r"\Z", r"\b", r"\B", r"\G")
GROUPS = ("(%s)", "(?:%s)", "(?i:%s)", "(?i)%s", "(?P<n>%s)", "(?<n>%s)", "(?s)%s", "(?-i:%s)")
JAVA_GROUPS = (
    "(?=%s)",
    "(?!%s)",
    "(?<=%s)",
    "(?<!%s)",
    "(?>%s)",
    r"(%s)\1?",
    r"(?<n>%s)\k<n>?",
    "(?x) %s ",
    "(?u)%s",
    "(?d:%s)",
    "(?=%s).*",
    "(?!%s).*",
    ".*(?<!%s)",
    ".*(?<=%s)",
)
INVALID = (
    "(", ")", "[", "]", "*", "*a", "+", "?", "a**", "a{2,1}", "a{1001}", "\\", "(?", "(?<",
    "[z-a]", r"\8", r"\p{Foo}", "(?P<n", "(?P<n>a)(?P<n>b)", "(?<1>a)", "a{99999999999}", "{",
    "}", "a{", "a{,2}", "a{2", "(?z)a", "[[:foo:]]", r"\Q", r"\E", r"\Qab", "(?<=a*)b", "(a",
    "a)", "[a", "[^", "[]", "[^]", r"\x", r"\x{110000}", r"\k<n>", r"\1", r"a\1(b)", "(?P=n)",
    "(?#c)a", r"\c", r"\u12", r"[\d-z]", "|", "||", "()", "(|a)", "(?:)", "x{0}", "(?i", r"\pX",
    r"\p", "a|*", "^*", "$+", r"\b+", "a+*", "a*+?", "(?=a)*", "(?<n>a)(?<n>b)",
)  # fmt: skip


def pattern(random: Random, known: World) -> str:
    """Return a pattern with or without a domain."""
    chance = random.random()
    if chance < 0.04:
        return random.choice(("", ".*", ".+", "^.*$", " ", "x" * 51, ".*" + "y?" * 30, "😀" * 26))
    prefix = random.choice(PREFIXES if chance < 0.9 else ODD_PREFIXES)
    return prefix + _sequence(random, known, 2)


def _sequence(random: Random, known: World, depth: int) -> str:
    count = random.choice((1, 1, 1, 2, 2, 3))
    return "".join(_item(random, known, depth) for _ in range(count))


def _item(random: Random, known: World, depth: int) -> str:
    makers = ((_plain, 40), (_class, 20), (_group, 22), (_quoted, 5), (_anchor, 6), (_broken, 7))
    made = random.choices([one for one, _ in makers], [weight for _, weight in makers])[0]
    return made(random, known, depth)


def _plain(random: Random, known: World, _: int) -> str:
    return random.choice((".*", ".*", ".+", _literal(random, known), _literal(random, known)))


def _class(random: Random, _: World, __: int) -> str:
    return random.choice(CLASSES) + _quantifier(random)


def _group(random: Random, known: World, depth: int) -> str:
    if not depth:
        return _plain(random, known, depth)
    if random.random() < 0.3:
        inner = "|".join(_sequence(random, known, 0) for _ in range(2))
        return f"({inner})" + _quantifier_of_group(random)
    group = random.choice(GROUPS if random.random() < 0.5 else JAVA_GROUPS)
    made = group.replace("%s", _sequence(random, known, depth - 1))
    return made + _quantifier_of_group(random)


def _quoted(random: Random, known: World, _: int) -> str:
    quoted = rf"\Q{_literal(random, known)}\E"
    return quoted + random.choice(("", ".*", "(?!x).*", "(?=.).*", "+"))


def _anchor(random: Random, _: World, __: int) -> str:
    return random.choice(ANCHORS)


def _broken(random: Random, _: World, __: int) -> str:
    return random.choice(INVALID)


def _literal(random: Random, known: World) -> str:
    names = [*known.topics, *(name for name, _ in known.partitioned), *known.non_persistent]
    word = random.choice([*names, *names, *WORDS, *ODD_WORDS])
    return word[random.randrange(0, 3) :][: random.randrange(1, 8)]


def _quantifier(random: Random) -> str:
    chance = random.random()
    if chance < 0.5:
        return ""
    return random.choice(QUANTIFIERS if chance < 0.93 else JAVA_QUANTIFIERS)


def _quantifier_of_group(random: Random) -> str:
    return random.choice(OF_GROUPS) if random.random() < 0.5 else ""
