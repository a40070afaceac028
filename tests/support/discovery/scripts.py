"""Scripts of a broker's behaviour towards a pattern consumer, and their durations."""

from collections.abc import Mapping
from dataclasses import dataclass, field

PATTERN = "persistent://public/default/t-.*"
PERIOD_SECONDS = 1
OPERATION_SECONDS = 3


@dataclass(frozen=True)
class Script:
    """A course of events.

    Attributes:
        topics: Local names of the initial topics.
        watchers: Feature flag of topic list watches.
        reconcile: Feature flag of list requests on a watch.
        steps: Per kind of request (list, watch, lookup) the outcomes in order: ``answer``,
            ``silence`` or an error's name; later ones ``answer``.
        events: Events, by seconds after the first listing.
        seconds: Moment of the consumer's close.
        period_seconds: Between the client's polls.
        families: Clients with defined behaviour; empty for all.
    """

    topics: tuple[str, ...] = ("t-a", "t-b", "other")
    watchers: bool = False
    reconcile: bool = False
    steps: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    events: tuple[tuple[float, str], ...] = ()
    seconds: float = 4.5
    period_seconds: int = PERIOD_SECONDS
    families: frozenset[str] = frozenset()


_JAVA = frozenset({"java"})
_CHANGES = ((1.4, "create t-c"), (2.4, "delete t-a"))

SCRIPTS: dict[str, Script] = {
    "steady": Script(events=_CHANGES),
    "partitioned": Script(topics=("t-p-partition-0", "t-p-partition-1"), seconds=2.5),
    "empty": Script(topics=("other",), seconds=2.5),
    "first refused": Script(steps={"list": ("TooManyRequests",)}, seconds=5),
    "first failed": Script(steps={"list": ("MetadataError",)}, seconds=5),
    "first unready": Script(steps={"list": ("ServiceNotReady",)}, seconds=5),
    "first forbidden": Script(steps={"list": ("AuthorizationError",)}, seconds=5),
    "first silent": Script(steps={"list": ("silence",)}, seconds=8),
    "poll refused": Script(
        steps={"list": ("answer", "TooManyRequests", "TooManyRequests")}, seconds=7.5
    ),
    "poll unready": Script(steps={"list": ("answer", "ServiceNotReady")}, seconds=6.5),
    "poll silent": Script(steps={"list": ("answer", "silence")}, seconds=8),
    "gone, then new": Script(
        events=((1.4, "delete t-a"), (2.4, "create t-c"), (4.4, "delete t-b")), seconds=6.5
    ),
    "partitioned, gone": Script(
        topics=("t-p-partition-0", "t-p-partition-1", "t-a"),
        events=((1.4, "delete t-p-partition-0"), (1.41, "delete t-p-partition-1")),
        seconds=3.5,
    ),
    "partitioned, grown": Script(
        topics=("t-p-partition-0",), events=((1.4, "create t-p-partition-1"),), seconds=3.5
    ),
    "lost while asking": Script(
        steps={"list": ("answer", "silence")}, events=((1.5, "drop"),), seconds=6
    ),
    "lost while asking first": Script(
        steps={"list": ("silence",)}, events=((0.5, "drop"),), seconds=6
    ),
    "lost": Script(events=((2.4, "drop"),), seconds=6),
    "down": Script(events=((1.4, "down"), (5.4, "up")), seconds=12),
    "watched": Script(watchers=True, events=_CHANGES, families=_JAVA),
    "watched, reconciled": Script(watchers=True, reconcile=True, events=_CHANGES, families=_JAVA),
    "wrong hash": Script(
        watchers=True,
        events=((2.3, "create-unseen t-c"), (2.4, "create t-d")),
        seconds=9.5,
        period_seconds=4,
        families=_JAVA,
    ),
    "wrong hash, reconciled": Script(
        watchers=True,
        reconcile=True,
        events=((2.3, "create-unseen t-c"), (2.4, "create t-d")),
        seconds=9.5,
        period_seconds=4,
        families=_JAVA,
    ),
    "watch forbidden": Script(
        watchers=True, steps={"watch": ("NotAllowedError",)}, seconds=6, families=_JAVA
    ),
    "watch refused": Script(
        watchers=True,
        steps={"watch": ("TooManyRequests", "TooManyRequests")},
        seconds=6,
        families=_JAVA,
    ),
    "watch always refused": Script(
        watchers=True, steps={"watch": ("TooManyRequests",) * 50}, seconds=8, families=_JAVA
    ),
    "watch failed": Script(
        watchers=True, steps={"watch": ("MetadataError",)}, seconds=6, families=_JAVA
    ),
    "watch silent": Script(watchers=True, steps={"watch": ("silence",)}, seconds=9, families=_JAVA),
    "lookup refused": Script(
        watchers=True, steps={"lookup": ("TooManyRequests",)}, seconds=6, families=_JAVA
    ),
    "watched, poll refused": Script(
        watchers=True,
        steps={"list": ("answer", "TooManyRequests", "TooManyRequests")},
        seconds=6,
        families=_JAVA,
    ),
    "watched, lost": Script(watchers=True, events=((2.4, "drop"),), seconds=6, families=_JAVA),
    "watched, missed": Script(
        watchers=True,
        events=((2.4, "drop"), (2.41, "create-unseen t-c"), (2.42, "delete-unseen t-a")),
        seconds=7.5,
        period_seconds=4,
        families=_JAVA,
    ),
    "reconciling refused": Script(
        watchers=True,
        reconcile=True,
        steps={"watch": ("answer", "TooManyRequests", "answer", "silence")},
        seconds=11,
        families=_JAVA,
    ),
    "watched, down": Script(
        watchers=True, events=((1.4, "down"), (5.4, "up")), seconds=12, families=_JAVA
    ),
}
