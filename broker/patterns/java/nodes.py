"""Parts of a pattern of java.util.regex, with their length in Java and their weight.

Source: java.util.regex.Pattern of Java 17, whose look-behinds count what they consume at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_REPEATS = 2**31 - 1


class Node(NamedTuple):
    """A part of a pattern.

    Attributes:
        text: The translation.
        longest: Characters that it consumes at most; None if Java sees no bound.
        fixed: Whether it matches in one way only, as Java sees it.
        plain: Whether it is a character or a class of them.
        repeats: How often at most something of ``longest`` characters comes, where Java
            multiplies; None elsewhere.
        choice: Whether it has branches.
        weight: The engine's instructions for it, about: it writes down what is repeated as often
            as it has to come, each in less than 1 us and about 300 bytes.
    """

    text: str
    longest: int | None = 1
    fixed: bool = True
    plain: bool = False
    repeats: int | None = None
    choice: bool = False
    weight: int = 1


def one(text: str) -> Node:
    """Return a part that consumes one character."""
    return Node(text, plain=True, weight=instructions(text))


def nothing_consumed(text: str) -> Node:
    """Return a part that consumes nothing."""
    return Node(text, 0, weight=instructions(text))


def instructions(text: str) -> int:
    """Return the weight of a translation in which nothing is repeated."""
    # However many characters a class names, they are one set; a property is looked up by itself.
    return 1 + text.count("(") + text.count(r"\p")


def joined(nodes: Sequence[Node]) -> Node:
    """Return parts that come one behind the other."""
    return Node(
        "".join(node.text for node in nodes),
        _longest(nodes),
        fixed=all(node.fixed for node in nodes),
        choice=any(node.choice for node in nodes),
        weight=sum(node.weight for node in nodes),
    )


def either(branches: Sequence[Node]) -> Node:
    """Return a choice between parts."""
    lengths = [branch.longest for branch in branches]
    known = [length for length in lengths if length is not None]
    return Node(
        f"(?:{'|'.join(branch.text for branch in branches)})",
        max(known) if len(known) == len(lengths) else None,
        fixed=False,
        choice=True,
        weight=sum(branch.weight + 1 for branch in branches),
    )


def grouped(opening: str, node: Node) -> Node:
    """Return a part in brackets."""
    # An engine that repeats an empty group takes the square of the time for an empty choice.
    text = f"{opening}{node.text or '|'})"
    return Node(text, node.longest, node.fixed, choice=node.choice, weight=node.weight + 1)


def repeated(node: Node, least: int, most: int | None, kind: str) -> Node:
    """Return a part repeated ``least`` to ``most`` times; None is without end.

    A ``kind`` of ``?`` takes as few as it can, one of ``+`` gives none back.
    """
    counts = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    count = counts.get((least, most)) or f"{{{least},{'' if most is None else most}}}"
    text, weight = f"(?:{node.text}){count}{kind}", node.weight * max(least, 1) + 1
    if (least, most) == (0, 1):
        return node._replace(text=text, fixed=False, plain=False, weight=weight)
    group = node.text.startswith("(") and not node.plain
    if node.longest is None or (group and not node.fixed and kind != "+"):
        return Node(text, None, fixed=False, weight=weight)
    if node.plain and most is None and not kind:
        return Node(text, MOST_REPEATS, fixed=False, weight=weight)
    times = MOST_REPEATS if most is None else most
    fixed = node.fixed and least == most
    return Node(text, node.longest, fixed=fixed, repeats=times, weight=weight)


def _longest(nodes: Sequence[Node]) -> int | None:
    """Return the most characters that these consume, counted in an int as Java does.

    It begins anew behind a choice.
    """
    before = here = 0
    for node in nodes:
        if node.longest is None:
            return None
        if node.choice:
            before, here = as_int(before + here + node.longest * (node.repeats or 1)), 0
        elif node.repeats is None:
            here = as_int(here + node.longest)
        else:
            now = as_int(here + node.longest * node.repeats)
            if now < here:
                return None
            here = now
    return as_int(before + here)


def as_int(number: int) -> int:
    """Return a number as a Java int, with its overflow."""
    return (number + 2**31) % 2**32 - 2**31
