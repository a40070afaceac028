"""Nodes of a parsed java.util.regex pattern: translation, longest match, estimated cost.

Source: java.util.regex.Pattern of Java 17; its look-behinds need the maximum consumed length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_REPEATS = 2**31 - 1


class Node(NamedTuple):
    """A translated part of a pattern, with the properties needed to combine it with others.

    Attributes:
        text: The translation.
        longest: Most characters consumed; None without a bound in Java's view.
        fixed: Whether the part matches in only one way, in Java's view.
        plain: Whether the part is a character or a character class.
        repeats: Maximum repetitions of ``longest`` characters, where Java multiplies; None
            elsewhere.
        choice: Whether the part has branches.
        weight: Approximate number of engine instructions: the engine writes out required
            repetitions, each in less than 1 us and about 300 bytes.
    """

    text: str
    longest: int | None = 1
    fixed: bool = True
    plain: bool = False
    repeats: int | None = None
    choice: bool = False
    weight: int = 1


def one(text: str) -> Node:
    """Return a node that matches one character."""
    return Node(text, plain=True, weight=instructions(text))


def nothing_consumed(text: str) -> Node:
    """Return a node that consumes no character, such as an anchor."""
    return Node(text, 0, weight=instructions(text))


def instructions(text: str) -> int:
    """Return the estimated number of engine instructions for a translation without repetitions."""
    # A class is one set, however many characters; each property is a separate lookup.
    return 1 + text.count("(") + text.count(r"\p")


def joined(nodes: Sequence[Node]) -> Node:
    """Return a node that matches the given nodes one after the other."""
    return Node(
        "".join(node.text for node in nodes),
        _longest(nodes),
        fixed=all(node.fixed for node in nodes),
        choice=any(node.choice for node in nodes),
        weight=sum(node.weight for node in nodes),
    )


def either(branches: Sequence[Node]) -> Node:
    """Return a node that matches any one of the given branches."""
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
    """Return a node in brackets; ``opening`` is the left bracket, such as ``(?:``."""
    # A repeated empty group takes the engine quadratic time for an empty choice.
    text = f"{opening}{node.text or '|'})"
    return Node(text, node.longest, node.fixed, choice=node.choice, weight=node.weight + 1)


def repeated(node: Node, least: int, most: int | None, kind: str) -> Node:
    """Return a node repeated ``least`` to ``most`` times; a ``most`` of None is unlimited.

    A ``kind`` of ``?`` is lazy, ``+`` possessive.
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
    """Return the largest number of characters that consecutive nodes consume, in Java's int.

    None if the number is unbounded. As in Java, it may overflow, and restarts after a choice.
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
    """Return a number reduced to the range of a Java int, as an overflow does."""
    return (number + 2**31) % 2**32 - 2**31
