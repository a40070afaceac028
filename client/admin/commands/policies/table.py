"""The table of policies that ``floodgate-admin`` gets, sets and removes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from client.admin.commands.options import words_of
from client.admin.commands.units import megabytes, minutes, one_of, seconds, size_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a verb that sets a policy.

    Attributes:
        name: Of its value.
        annotation: Its type, its spellings and its help, as typer takes them.
        default: Its value where it is not given; ``...`` for one that must be.
    """

    name: str
    annotation: Any
    default: Any = ...


@dataclass(frozen=True, slots=True)
class PolicyVerbs:
    """The verbs of one policy: get-NAME, set-NAME and remove-NAME.

    Attributes:
        name: As pulsar-admin has it.
        what: The policy in words.
        example: Options of the verb that sets it.
        options: Of the verb that sets it.
        body: Makes the body of the options' values.
        namespace: The end of a namespace's path; empty for none.
        topic: The end of a topic's path; empty for none.
        methods: Those that set it, for namespaces and for topics.
        removable: Whether there is a verb that removes it, for namespaces and for topics.
        in_query: The option that goes into a topic's query in place of a body.
    """

    name: str
    what: str
    example: str
    options: tuple[Option, ...]
    body: Callable[[Mapping[str, Any]], object]
    namespace: str = ""
    topic: str = ""
    methods: tuple[str, str] = ("POST", "POST")
    removable: tuple[bool, bool] = (True, True)
    in_query: str = ""


def _number(name: str, short: str, what: str) -> Option:
    return Option("number", Annotated[int, typer.Option(name, short, metavar="N", help=what)])


def _parsed(
    name: str,
    parse: Callable[[str], int],
    spellings: tuple[str, ...],
    what: str,
    default: object = ...,
) -> Option:
    metavar = "SIZE" if parse in (size_bytes, megabytes) else "TIME"
    option = typer.Option(*spellings, parser=parse, metavar=metavar, help=what)
    return Option(name, Annotated[int, option], default)


_ENABLED = Option(
    "enabled", Annotated[bool, typer.Option("--enable/--disable", "-e/-d", help="On or off.")]
)


def _most(name: str, short: str, what: str, namespace: str, topic: str = "") -> PolicyVerbs:
    option = _number(f"--{name}", short, "New limit; 0: unlimited.")
    return PolicyVerbs(
        name, what, f"{short} 5", (option,), lambda given: given["number"], namespace, topic
    )


def _switch(
    name: str,
    what: str,
    namespace: str,
    topic: str = "",
    key: str = "",
    removable: tuple[bool, bool] = (True, True),
) -> PolicyVerbs:
    """Return a policy that is on or off; its body is a boolean, or an object with one member."""
    return PolicyVerbs(
        name,
        what,
        "--enable",
        (_ENABLED,),
        lambda given: {key: given["enabled"]} if key else given["enabled"],
        namespace,
        topic,
        removable=removable,
    )


_RATE = (
    Option(
        "messages",
        Annotated[
            int,
            typer.Option(
                "--msg-dispatch-rate",
                "-md",
                metavar="N",
                help="Messages per period; -1: unlimited.",
            ),
        ],
        -1,
    ),
    Option(
        "size",
        Annotated[
            int,
            typer.Option(
                "--byte-dispatch-rate", "-bd", metavar="N", help="Bytes per period; -1: unlimited."
            ),
        ],
        -1,
    ),
    Option(
        "period",
        Annotated[
            int,
            typer.Option(
                "--dispatch-rate-period", "-dt", metavar="SECONDS", help="Length of the period."
            ),
        ],
        1,
    ),
    Option(
        "relative",
        Annotated[
            bool,
            typer.Option(
                "--relative-to-publish-rate", "-rp", help="Add the rate of publishing to the limit."
            ),
        ],
        False,
    ),
)


def _rate_body(given: Mapping[str, Any]) -> object:
    return {
        "dispatchThrottlingRateInMsg": given["messages"],
        "dispatchThrottlingRateInByte": given["size"],
        "ratePeriodInSecond": given["period"],
        "relativeToPublishRate": given["relative"],
    }


_STRATEGIES = (
    "FULL",
    "BACKWARD",
    "FORWARD",
    "FULL_TRANSITIVE",
    "BACKWARD_TRANSITIVE",
    "FORWARD_TRANSITIVE",
    "ALWAYS_COMPATIBLE",
    "ALWAYS_INCOMPATIBLE",
    "UNDEFINED",
)
_STRATEGY = Option(
    "strategy",
    Annotated[
        str,
        typer.Option(
            "--compatibility",
            "-c",
            parser=one_of(*_STRATEGIES),
            metavar="NAME",
            help="FULL, BACKWARD, FORWARD, their _TRANSITIVE forms, ALWAYS_COMPATIBLE, "
            "ALWAYS_INCOMPATIBLE; UNDEFINED: the broker's.",
        ),
    ],
)
_BOOKIES = tuple(
    Option(name, Annotated[int, typer.Option(f"--{spelling}", short, metavar="N", help=what)], 1)
    for name, spelling, short, what in (
        ("bookkeeperEnsemble", "bookkeeper-ensemble", "-e", "Bookies for a topic."),
        ("bookkeeperWriteQuorum", "bookkeeper-write-quorum", "-w", "Copies of each entry."),
        (
            "bookkeeperAckQuorum",
            "bookkeeper-ack-quorum",
            "-a",
            "Copies to wait for before an entry is confirmed.",
        ),
    )
)
_PERSISTENCE = (
    *_BOOKIES,
    Option(
        "managedLedgerMaxMarkDeleteRate",
        Annotated[
            float,
            typer.Option(
                "--ml-mark-delete-max-rate", "-r", metavar="N", help="Most cursor updates a second."
            ),
        ],
        1.0,
    ),
)

POLICIES = (
    PolicyVerbs(
        "retention",
        "retention of acknowledged messages",
        "-t 10m -s 100M",
        (
            _parsed(
                "time", minutes, ("--time", "-t"), "10m, 3h, 2d; 0: no retention, -1: forever."
            ),
            _parsed("size", megabytes, ("--size", "-s"), "10M, 16G; -1: unlimited."),
        ),
        lambda given: {
            "retentionTimeInMinutes": given["time"],
            "retentionSizeInMB": given["size"],
        },
        "retention",
        "retention",
    ),
    PolicyVerbs(
        "message-ttl",
        "time to live of unacknowledged messages",
        "-t 1h",
        (_parsed("time", seconds, ("--messageTTL", "--ttl", "-ttl", "-t"), "90s, 10m; 0: never."),),
        lambda given: given["time"],
        "messageTTL",
        "messageTTL",
        in_query="messageTTL",
    ),
    _switch(
        "deduplication",
        "message deduplication setting",
        "deduplication",
        "deduplicationEnabled",
    ),
    PolicyVerbs(
        "deduplication-snapshot-interval",
        "interval of deduplication snapshots",
        "-i 1000",
        (_number("--interval", "-i", "Messages between two snapshots."),),
        lambda given: given["number"],
        "deduplicationSnapshotInterval",
        "deduplicationSnapshotInterval",
        removable=(False, True),
    ),
    PolicyVerbs(
        "delayed-delivery",
        "delayed delivery setting",
        "--enable",
        (
            _ENABLED,
            _parsed("time", seconds, ("--time", "-t"), "Precision of delivery times.", "1s"),
            _parsed(
                "longest",
                seconds,
                ("--maxDelay", "-md"),
                "Longest allowed delay; 0: unlimited.",
                "0",
            ),
        ),
        lambda given: {
            "active": given["enabled"],
            "tickTime": given["time"] * 1000,
            "maxDeliveryDelayInMillis": given["longest"] * 1000,
        },
        "delayedDelivery",
        "delayedDelivery",
    ),
    _most(
        "max-producers-per-topic",
        "-p",
        "limit of producers per topic",
        "maxProducersPerTopic",
    ),
    _most(
        "max-consumers-per-topic",
        "-c",
        "limit of consumers per topic",
        "maxConsumersPerTopic",
    ),
    _most("max-producers", "-p", "limit of producers per topic", "", "maxProducers"),
    _most("max-consumers", "-c", "limit of consumers per topic", "", "maxConsumers"),
    _most(
        "max-consumers-per-subscription",
        "-c",
        "limit of consumers per subscription",
        "maxConsumersPerSubscription",
        "maxConsumersPerSubscription",
    ),
    _most(
        "max-subscriptions-per-topic",
        "-m",
        "limit of subscriptions per topic",
        "maxSubscriptionsPerTopic",
        "maxSubscriptionsPerTopic",
    ),
    _most(
        "max-unacked-messages-per-consumer",
        "-c",
        "limit of unacknowledged messages per consumer",
        "maxUnackedMessagesPerConsumer",
        "maxUnackedMessagesOnConsumer",
    ),
    _most(
        "max-unacked-messages-per-subscription",
        "-c",
        "limit of unacknowledged messages per subscription",
        "maxUnackedMessagesPerSubscription",
        "maxUnackedMessagesOnSubscription",
    ),
    _most(
        "max-topics-per-namespace",
        "-t",
        "limit of topics",
        "maxTopicsPerNamespace",
    ),
    _most("max-message-size", "-m", "limit of the message size", "", "maxMessageSize"),
    PolicyVerbs(
        "compaction-threshold",
        "topic size that starts compaction",
        "-t 100M",
        (
            _parsed(
                "size", size_bytes, ("--threshold", "-t"), "10M, 16G; 0: no automatic compaction."
            ),
        ),
        lambda given: given["size"],
        "compactionThreshold",
        "compactionThreshold",
        ("PUT", "POST"),
    ),
    PolicyVerbs(
        "subscription-expiration-time",
        "expiration time of unused subscriptions",
        "-t 1d",
        (_parsed("time", minutes, ("--time", "-t"), "10m, 3h, 2d; 0: never."),),
        lambda given: given["time"],
        "subscriptionExpirationTime",
        "subscriptionExpirationTime",
    ),
    PolicyVerbs(
        "inactive-topic-policies",
        "rules for the deletion of unused topics",
        "-e -t 1h -m delete_when_no_subscriptions",
        (
            Option(
                "enabled",
                Annotated[
                    bool,
                    typer.Option(
                        "--enable-delete-while-inactive/--disable-delete-while-inactive",
                        "-e/-d",
                        help="Delete unused topics, or keep them.",
                    ),
                ],
            ),
            _parsed(
                "time",
                seconds,
                ("--max-inactive-duration", "-t"),
                "Time without use before the deletion.",
            ),
            Option(
                "mode",
                Annotated[
                    str,
                    typer.Option(
                        "--delete-mode",
                        "-m",
                        parser=one_of(
                            "delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"
                        ),
                        metavar="NAME",
                        help="When a topic is unused: delete_when_no_subscriptions, "
                        "delete_when_subscriptions_caught_up.",
                    ),
                ],
            ),
        ),
        lambda given: {
            "inactiveTopicDeleteMode": given["mode"],
            "maxInactiveDurationSeconds": given["time"],
            "deleteWhileInactive": given["enabled"],
        },
        "inactiveTopicPolicies",
        "inactiveTopicPolicies",
    ),
    PolicyVerbs(
        "subscription-types-enabled",
        "allowed subscription types",
        "-t Shared,Exclusive",
        (
            Option(
                "types",
                Annotated[
                    list[str],
                    typer.Option(
                        "--types",
                        "-t",
                        metavar="A,B",
                        help="Allowed types: Exclusive, Failover, Shared, Key_Shared.",
                    ),
                ],
            ),
        ),
        lambda given: words_of(given["types"]),
        "subscriptionTypesEnabled",
        "subscriptionTypesEnabled",
    ),
    PolicyVerbs(
        "publish-rate",
        "publish rate limit",
        "-m 1000",
        (
            Option(
                "messages",
                Annotated[
                    int,
                    typer.Option(
                        "--msg-publish-rate",
                        "-m",
                        metavar="N",
                        help="Messages a second; -1: unlimited.",
                    ),
                ],
                -1,
            ),
            Option(
                "size",
                Annotated[
                    int,
                    typer.Option(
                        "--byte-publish-rate",
                        "-b",
                        metavar="N",
                        help="Bytes a second; -1: unlimited.",
                    ),
                ],
                -1,
            ),
        ),
        lambda given: {
            "publishThrottlingRateInMsg": given["messages"],
            "publishThrottlingRateInByte": given["size"],
        },
        "publishRate",
        "publishRate",
    ),
    PolicyVerbs(
        "dispatch-rate",
        "dispatch rate limit per topic",
        "-md 1000",
        _RATE,
        _rate_body,
        "dispatchRate",
        "dispatchRate",
    ),
    PolicyVerbs(
        "subscription-dispatch-rate",
        "dispatch rate limit per subscription",
        "-md 1000",
        _RATE,
        _rate_body,
        "subscriptionDispatchRate",
        "subscriptionDispatchRate",
    ),
    PolicyVerbs(
        "subscribe-rate",
        "subscribe rate limit per consumer",
        "-sr 10",
        (
            Option(
                "number",
                Annotated[
                    int,
                    typer.Option(
                        "--subscribe-rate",
                        "-sr",
                        metavar="N",
                        help="Subscribes per period; -1: unlimited.",
                    ),
                ],
                -1,
            ),
            Option(
                "period",
                Annotated[
                    int,
                    typer.Option(
                        "--subscribe-rate-period",
                        "-st",
                        metavar="S",
                        help="Length of the period, seconds.",
                    ),
                ],
                30,
            ),
        ),
        lambda given: {
            "subscribeThrottlingRatePerConsumer": given["number"],
            "ratePeriodInSecond": given["period"],
        },
        "subscribeRate",
        "subscribeRate",
    ),
    PolicyVerbs(
        "persistence",
        "number of stored copies",
        "-e 2 -w 2 -a 2",
        _PERSISTENCE,
        dict,
        "persistence",
        "persistence",
    ),
    PolicyVerbs(
        "schema-compatibility-strategy",
        "schema compatibility strategy",
        "-c BACKWARD",
        (_STRATEGY,),
        lambda given: given["strategy"],
        "schemaCompatibilityStrategy",
        "schemaCompatibilityStrategy",
        ("PUT", "PUT"),
        (False, True),
    ),
    _switch(
        "schema-validation-enforce",
        "schema requirement for producers",
        "schemaValidationEnforced",
        "schemaValidationEnforced",
        removable=(False, False),
    ),
    _switch(
        "is-allow-auto-update-schema",
        "permission for producers to upload new schemas",
        "isAllowAutoUpdateSchema",
        removable=(False, False),
    ),
    _switch(
        "encryption-required",
        "encryption requirement for messages",
        "encryptionRequired",
        removable=(False, False),
    ),
    _switch(
        "auto-subscription-creation",
        "automatic creation of subscriptions",
        "autoSubscriptionCreation",
        "autoSubscriptionCreation",
        "allowAutoSubscriptionCreation",
    ),
)
