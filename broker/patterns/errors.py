"""Errors of patterns, with the messages of the regex engines in a Pulsar broker.

Source: messages of java.util.regex (Java 17) and RE2/J for common mistakes; for rare mistakes our
engine's words in the same form.
"""

from __future__ import annotations


class JavaSyntaxError(ValueError):
    """A syntax error in a pattern, with the words of java.util.regex.

    Attributes:
        what: The mistake, in Java's words.
        index: Position of the mistake; negative where Java reports none.
    """

    def __init__(self, what: str, index: int) -> None:
        super().__init__(what, index)
        self.what = what
        self.index = index


JDK_ERROR = "java.util.regex.PatternSyntaxException"
RE2J_ERROR = "com.google.re2j.PatternSyntaxException"
ILLEGAL_ARGUMENT = "java.lang.IllegalArgumentException"

_RE2_WORDS = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
}
_TRAILING_BACKSLASH = "trailing backslash at end of expression"


class InvalidPatternError(ValueError):
    """A pattern that cannot be compiled, or takes too long to evaluate.

    Attributes:
        description: The mistake, in the engine's words.
        java_class: The corresponding exception of a real broker; empty without one.
    """

    def __init__(self, description: str, java_class: str = "", *, prefix: str = "") -> None:
        super().__init__(prefix + description)
        self.description = description
        self.java_class = java_class

    @property
    def java_text(self) -> str:
        """A Pulsar broker's error message for this pattern in a topic-list request."""
        return f"{self.java_class}: {self.description}" if self.java_class else str(self)


def invalid_syntax(description: str, java_class: str) -> InvalidPatternError:
    """Return the error for a pattern that cannot be compiled.

    The text is the same as in a real broker's answer to a watch.
    """
    return InvalidPatternError(description, java_class, prefix="Invalid topics pattern: ")


def jdk_description(pattern: str, error: JavaSyntaxError) -> str:
    """Format a syntax error as java.util.regex does, with a caret below the position."""
    index = error.index
    where = f" near index {index}" if index >= 0 else ""
    caret = f"\n{' ' * index}^" if 0 <= index < len(pattern) else ""
    return f"{error.what}{where}\n{pattern}{caret}"


def re2j_description(error: Exception) -> str:
    """Convert an error message of RE2 to the corresponding message of RE2/J."""
    message = error.args[0] if error.args else ""
    text = message.decode(errors="replace") if isinstance(message, bytes) else str(message)
    what, colon, where = text.partition(": ")
    if what.startswith("trailing \\"):
        return f"error parsing regexp: {_TRAILING_BACKSLASH}"
    quoted = f": `{where}`" if colon else ""
    return f"error parsing regexp: {_RE2_WORDS.get(what, what)}{quoted}"
