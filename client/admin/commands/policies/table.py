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
    option = _number(f"--{name}", short, "The number; 0 is without limit.")
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
            int, typer.Option("--msg-dispatch-rate", "-md", metavar="N", help="Messages a period.")
        ],
        -1,
    ),
    Option(
        "size",
        Annotated[
            int, typer.Option("--byte-dispatch-rate", "-bd", metavar="N", help="Bytes a period.")
        ],
        -1,
    ),
    Option(
        "period",
        Annotated[
            int,
            typer.Option("--dispatch-rate-period", "-dt", metavar="SECONDS", help="The period."),
        ],
        1,
    ),
    Option(
        "relative",
        Annotated[
            bool,
            typer.Option("--relative-to-publish-rate", "-rp", help="On top of publishing's."),
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
            "ALWAYS_INCOMPATIBLE; UNDEFINED is that of the broker.",
        ),
    ],
)
_BOOKIES = tuple(
    Option(name, Annotated[int, typer.Option(f"--{spelling}", short, metavar="N", help=what)], 1)
    for name, spelling, short, what in (
        ("bookkeeperEnsemble", "bookkeeper-ensemble", "-e", "Bookies of a topic."),
        ("bookkeeperWriteQuorum", "bookkeeper-write-quorum", "-w", "Copies of an entry."),
        ("bookkeeperAckQuorum", "bookkeeper-ack-quorum", "-a", "Copies that are waited for."),
    )
)
_PERSISTENCE = (
    *_BOOKIES,
    Option(
        "managedLedgerMaxMarkDeleteRate",
        Annotated[
            float, typer.Option("--ml-mark-delete-max-rate", "-r", metavar="N", help="A second.")
        ],
        1.0,
    ),
)

POLICIES = (
    PolicyVerbs(
        "retention",
        "how long acknowledged messages are kept",
        "-t 10m -s 100M",
        (
            _parsed("time", minutes, ("--time", "-t"), "10m, 3h, 2d; 0: not at all, -1: ever."),
            _parsed("size", megabytes, ("--size", "-s"), "10M, 16G; -1: without limit."),
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
        "after how long messages are acknowledged by themselves",
        "-t 1h",
        (_parsed("time", seconds, ("--messageTTL", "--ttl", "-ttl", "-t"), "90s, 10m; 0: never."),),
        lambda given: given["time"],
        "messageTTL",
        "messageTTL",
        in_query="messageTTL",
    ),
    _switch(
        "deduplication",
        "whether what is sent twice is stored once",
        "deduplication",
        "deduplicationEnabled",
    ),
    PolicyVerbs(
        "deduplication-snapshot-interval",
        "how often sequence ids are kept",
        "-i 1000",
        (_number("--interval", "-i", "Messages between two times."),),
        lambda given: given["number"],
        "deduplicationSnapshotInterval",
        "deduplicationSnapshotInterval",
        removable=(False, True),
    ),
    PolicyVerbs(
        "delayed-delivery",
        "whether messages may be delivered later",
        "--enable",
        (
            _ENABLED,
            _parsed("time", seconds, ("--time", "-t"), "How exactly, 1s without it.", "1s"),
            _parsed("longest", seconds, ("--maxDelay", "-md"), "The longest delay; 0 is any.", "0"),
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
        "how many producers a topic may have",
        "maxProducersPerTopic",
    ),
    _most(
        "max-consumers-per-topic",
        "-c",
        "how many consumers a topic may have",
        "maxConsumersPerTopic",
    ),
    _most("max-producers", "-p", "how many producers a topic may have", "", "maxProducers"),
    _most("max-consumers", "-c", "how many consumers a topic may have", "", "maxConsumers"),
    _most(
        "max-consumers-per-subscription",
        "-c",
        "how many consumers a subscription may have",
        "maxConsumersPerSubscription",
        "maxConsumersPerSubscription",
    ),
    _most(
        "max-subscriptions-per-topic",
        "-m",
        "how many subscriptions a topic may have",
        "maxSubscriptionsPerTopic",
        "maxSubscriptionsPerTopic",
    ),
    _most(
        "max-unacked-messages-per-consumer",
        "-c",
        "how many messages a consumer may have that it has not acknowledged",
        "maxUnackedMessagesPerConsumer",
        "maxUnackedMessagesOnConsumer",
    ),
    _most(
        "max-unacked-messages-per-subscription",
        "-c",
        "how many messages consumers of a subscription may have that are not acknowledged",
        "maxUnackedMessagesPerSubscription",
        "maxUnackedMessagesOnSubscription",
    ),
    _most(
        "max-topics-per-namespace",
        "-t",
        "how many topics a namespace may have",
        "maxTopicsPerNamespace",
    ),
    _most("max-message-size", "-m", "how large a message may be", "", "maxMessageSize"),
    PolicyVerbs(
        "compaction-threshold",
        "at what size a topic is compacted",
        "-t 100M",
        (_parsed("size", size_bytes, ("--threshold", "-t"), "10M, 16G; 0 is never."),),
        lambda given: given["size"],
        "compactionThreshold",
        "compactionThreshold",
        ("PUT", "POST"),
    ),
    PolicyVerbs(
        "subscription-expiration-time",
        "after how long unused subscriptions are deleted",
        "-t 1d",
        (_parsed("time", minutes, ("--time", "-t"), "10m, 3h, 2d; 0 is never."),),
        lambda given: given["time"],
        "subscriptionExpirationTime",
        "subscriptionExpirationTime",
    ),
    PolicyVerbs(
        "inactive-topic-policies",
        "which unused topics are deleted",
        "-e -t 1h -m delete_when_no_subscriptions",
        (
            Option(
                "enabled",
                Annotated[
                    bool,
                    typer.Option(
                        "--enable-delete-while-inactive/--disable-delete-while-inactive",
                        "-e/-d",
                        help="Whether any are.",
                    ),
                ],
            ),
            _parsed("time", seconds, ("--max-inactive-duration", "-t"), "Unused for so long."),
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
                        help="delete_when_no_subscriptions, delete_when_subscriptions_caught_up.",
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
        "which types subscriptions may have",
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
                        help="Exclusive, Failover, Shared, Key_Shared.",
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
        "how much may be published",
        "-m 1000",
        (
            Option(
                "messages",
                Annotated[
                    int,
                    typer.Option("--msg-publish-rate", "-m", metavar="N", help="A second."),
                ],
                -1,
            ),
            Option(
                "size",
                Annotated[
                    int,
                    typer.Option("--byte-publish-rate", "-b", metavar="N", help="Bytes a second."),
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
        "how much a topic may deliver",
        "-md 1000",
        _RATE,
        _rate_body,
        "dispatchRate",
        "dispatchRate",
    ),
    PolicyVerbs(
        "subscription-dispatch-rate",
        "how much a subscription may deliver",
        "-md 1000",
        _RATE,
        _rate_body,
        "subscriptionDispatchRate",
        "subscriptionDispatchRate",
    ),
    PolicyVerbs(
        "subscribe-rate",
        "how often a consumer may subscribe",
        "-sr 10",
        (
            Option(
                "number",
                Annotated[
                    int, typer.Option("--subscribe-rate", "-sr", metavar="N", help="A period.")
                ],
                -1,
            ),
            Option(
                "period",
                Annotated[
                    int,
                    typer.Option("--subscribe-rate-period", "-st", metavar="S", help="Of it."),
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
        "in how many copies messages are stored",
        "-e 2 -w 2 -a 2",
        _PERSISTENCE,
        dict,
        "persistence",
        "persistence",
    ),
    PolicyVerbs(
        "schema-compatibility-strategy",
        "what a new schema has to be compatible with",
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
        "whether producers without a schema are refused",
        "schemaValidationEnforced",
        "schemaValidationEnforced",
        removable=(False, False),
    ),
    _switch(
        "is-allow-auto-update-schema",
        "whether producers may bring new schemas",
        "isAllowAutoUpdateSchema",
        removable=(False, False),
    ),
    _switch(
        "encryption-required",
        "whether messages have to be encrypted",
        "encryptionRequired",
        removable=(False, False),
    ),
    _switch(
        "auto-subscription-creation",
        "whether consumers may make subscriptions",
        "autoSubscriptionCreation",
        "autoSubscriptionCreation",
        "allowAutoSubscriptionCreation",
    ),
)
