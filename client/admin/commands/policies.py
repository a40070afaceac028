"""The commands that get, set and remove policies, generated from a single table.

They belong to ``floodgate-admin namespaces`` and ``topicPolicies``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from client.admin.commands.options import REQUIRED, Option, flag, name_of, number, parsed, words
from client.admin.commands.values import (
    megabytes,
    milliseconds,
    minutes,
    one_of,
    seconds,
    size_bytes,
)
from client.admin.commands.verbs import Done, Verb, group, value

if TYPE_CHECKING:
    from collections.abc import Iterator

topic_policies = group("topicPolicies", "Policies of single topics.",
                       "set-retention acme/orders/eu -t 10m -s 100M",
                       "get-retention acme/orders/eu --applied", "VERB --help")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy, from which the commands get-NAME, set-NAME and remove-NAME are generated.

    Attributes:
        name: The name in pulsar-admin, which is also used here.
        what: The policy in words, for help texts.
        example: Options of the set command in its example.
        options: Options of the set command: a single option whose value is the body, or the members
            of the body.
        namespace: Last segment of the REST path for namespaces. If empty, namespaces do not have
            the policy; if None, it is the name without hyphens, in camel case.
        topic: Last segment of the REST path for topics; empty and None mean the same as above.
        methods: HTTP methods of the set command, for namespaces and for topics.
        removable: Whether a remove command exists, for namespaces and for topics.
        in_query: Whether a topic's value is sent as a query parameter instead of a body.
    """

    name: str
    what: str
    example: str
    options: Option | dict[str, Option]
    namespace: str | None = None
    topic: str | None = None
    methods: tuple[str, str] = ("POST", "POST")
    removable: tuple[bool, bool] = (True, True)
    in_query: bool = False

    def end(self, *, topics: bool) -> str:
        """Return the last segment of the policy's REST path.

        It is empty if topics, or namespaces, do not have the policy.
        """
        first, *others = self.name.split("-")
        end = self.topic if topics else self.namespace
        return first + "".join(map(str.capitalize, others)) if end is None else end

    def verbs(self, *, topics: bool) -> list[Verb]:
        """Return the policy's commands: for topics if ``topics``, otherwise for namespaces."""
        of, path, default = _TOPICS if topics else _NAMESPACES
        own = {_VALUE: self.options} if isinstance(self.options, Option) else self.options
        body = _VALUE if _VALUE in own else "*"
        end = self.end(topics=topics)
        sent = f"?{end}={{{body}}}" if topics and self.in_query else f" {{{body}}}"
        rows = [
            Verb(f"get-{self.name}", f"Show the {self.what} of a {of}.",
                 f"GET {path}/{end}{_APPLIED[topics]}", f"get {self.name} of {{{of}}}", value),
            Verb(f"set-{self.name}", f"Set the {self.what} of a {of}.",
                 f"{self.methods[topics]} {path}/{end}{sent}", f"set {self.name} of {{{of}}}",
                 Done(f"updated {{{of}}}", f"{self.name}={body}"), self.example, own),
            Verb(f"remove-{self.name}",
                 f"Remove the {self.what} of a {of}: {default} applies again.",
                 f"DELETE {path}/{end}", f"remove {self.name} of {{{of}}}",
                 Done(f"updated {{{of}}}", f"removed={self.name}")),
        ]  # fmt: skip
        return rows if self.removable[topics] else rows[:-1]


_TOPICS = ("topic", "{topic}", "that of its namespace")
_NAMESPACES = ("namespace", "namespaces/{namespace}", "the default of the broker")
"""For policies of namespaces: the subject in help texts, the REST path, the value if unset."""
_APPLIED = ("", "?applied={applied}")
_VALUE = "limit"
_NEVER = (False, False)
_OF_TOPICS = (False, True)
_ENABLED = flag("--enable/--disable -e/-d", "On or off.", REQUIRED)
_RATE = {
    "dispatchThrottlingRateInMsg": number(
        "--msg-dispatch-rate -md", "Messages per period; -1: unlimited.", -1),
    "dispatchThrottlingRateInByte": number(
        "--byte-dispatch-rate -bd", "Bytes per period; -1: unlimited.", -1),
    "ratePeriodInSecond": Option(
        int, "--dispatch-rate-period -dt", "Length of the period.", "SECONDS", 1),
    "relativeToPublishRate": flag(
        "--relative-to-publish-rate -rp", "Add the rate of publishing to the limit."),
}  # fmt: skip
_STRATEGIES = (
    "FULL", "BACKWARD", "FORWARD", "FULL_TRANSITIVE", "BACKWARD_TRANSITIVE", "FORWARD_TRANSITIVE",
    "ALWAYS_COMPATIBLE", "ALWAYS_INCOMPATIBLE", "UNDEFINED",
)  # fmt: skip


def _most(
    name: str, short: str, what: str, namespace: str | None = None, topic: str | None = None
) -> Policy:
    limit = number(f"--{name} {short}", "New limit; 0: unlimited.")
    return Policy(name, what, f"{short} 5", limit, namespace, topic)


POLICIES = (
    Policy("retention", "retention of acknowledged messages", "-t 10m -s 100M", {
        "retentionTimeInMinutes": parsed(
            minutes, "--time -t", "10m, 3h, 2d; 0: no retention, -1: forever."),
        "retentionSizeInMB": parsed(megabytes, "--size -s", "10M, 16G; -1: unlimited."),
    }),
    Policy("message-ttl", "time to live of unacknowledged messages", "-t 1h",
           parsed(seconds, "--messageTTL --ttl -ttl -t", "90s, 10m; 0: never."),
           "messageTTL", "messageTTL", in_query=True),
    Policy("deduplication", "message deduplication setting", "--enable", _ENABLED,
           topic="deduplicationEnabled"),
    Policy("deduplication-snapshot-interval", "interval of deduplication snapshots", "-i 1000",
           number("--interval -i", "Messages between two snapshots."), removable=_OF_TOPICS),
    Policy("delayed-delivery", "delayed delivery setting", "--enable", {
        "active": _ENABLED,
        "tickTime": parsed(milliseconds, "--time -t", "Precision of delivery times.", "1s"),
        "maxDeliveryDelayInMillis": parsed(
            milliseconds, "--maxDelay -md", "Longest allowed delay; 0: unlimited.", "0"),
    }),
    _most("max-producers-per-topic", "-p", "limit of producers per topic", topic=""),
    _most("max-consumers-per-topic", "-c", "limit of consumers per topic", topic=""),
    _most("max-producers", "-p", "limit of producers per topic", ""),
    _most("max-consumers", "-c", "limit of consumers per topic", ""),
    _most("max-consumers-per-subscription", "-c", "limit of consumers per subscription"),
    _most("max-subscriptions-per-topic", "-m", "limit of subscriptions per topic"),
    _most("max-unacked-messages-per-consumer", "-c",
          "limit of unacknowledged messages per consumer", topic="maxUnackedMessagesOnConsumer"),
    _most("max-unacked-messages-per-subscription", "-c",
          "limit of unacknowledged messages per subscription",
          topic="maxUnackedMessagesOnSubscription"),
    _most("max-topics-per-namespace", "-t", "limit of topics", topic=""),
    _most("max-message-size", "-m", "limit of the message size", ""),
    Policy("compaction-threshold", "topic size that starts compaction", "-t 100M",
           parsed(size_bytes, "--threshold -t", "10M, 16G; 0: no automatic compaction."),
           methods=("PUT", "POST")),
    Policy("subscription-expiration-time", "expiration time of unused subscriptions", "-t 1d",
           parsed(minutes, "--time -t", "10m, 3h, 2d; 0: never."), in_query=True),
    Policy("inactive-topic-policies", "rules for the deletion of unused topics",
           "-e -t 1h -m delete_when_no_subscriptions", {
        "deleteWhileInactive": flag(
            "--enable-delete-while-inactive/--disable-delete-while-inactive -e/-d",
            "Delete unused topics, or keep them.", REQUIRED),
        "maxInactiveDurationSeconds": parsed(
            seconds, "--max-inactive-duration -t", "Time without use before the deletion."),
        "inactiveTopicDeleteMode": name_of(
            "--delete-mode -m", "When a topic is unused",
            "delete_when_no_subscriptions", "delete_when_subscriptions_caught_up"),
    }),
    Policy("subscription-types-enabled", "allowed subscription types", "-t Shared,Exclusive",
           words("--types -t", "Allowed types: Exclusive, Failover, Shared, Key_Shared.")),
    Policy("publish-rate", "publish rate limit", "-m 1000", {
        "publishThrottlingRateInMsg": number(
            "--msg-publish-rate -m", "Messages a second; -1: unlimited.", -1),
        "publishThrottlingRateInByte": number(
            "--byte-publish-rate -b", "Bytes a second; -1: unlimited.", -1),
    }),
    Policy("dispatch-rate", "dispatch rate limit per topic", "-md 1000", _RATE),
    Policy("subscription-dispatch-rate", "dispatch rate limit per subscription", "-md 1000", _RATE),
    Policy("subscribe-rate", "subscribe rate limit per consumer", "-sr 10", {
        "subscribeThrottlingRatePerConsumer": number(
            "--subscribe-rate -sr", "Subscribes per period; -1: unlimited.", -1),
        "ratePeriodInSecond": Option(
            int, "--subscribe-rate-period -st", "Length of the period, seconds.", "S", 30),
    }),
    Policy("persistence", "number of stored copies", "-e 2 -w 2 -a 2", {
        "bookkeeperEnsemble": number("--bookkeeper-ensemble -e", "Bookies for a topic.", 1),
        "bookkeeperWriteQuorum": number("--bookkeeper-write-quorum -w", "Copies of each entry.", 1),
        "bookkeeperAckQuorum": number("--bookkeeper-ack-quorum -a",
                                      "Copies to wait for before an entry is confirmed.", 1),
        "managedLedgerMaxMarkDeleteRate": Option(float, "--ml-mark-delete-max-rate -r",
                                                 "Most cursor updates a second.", "N", 1.0),
    }),
    Policy("schema-compatibility-strategy", "schema compatibility strategy", "-c BACKWARD",
           Option(str, "--compatibility -c",
                  "FULL, BACKWARD, FORWARD, their _TRANSITIVE forms, ALWAYS_COMPATIBLE, "
                  "ALWAYS_INCOMPATIBLE; UNDEFINED: the broker's.", "NAME",
                  parser=one_of(*_STRATEGIES)), methods=("PUT", "PUT"), removable=_OF_TOPICS),
    Policy("schema-validation-enforce", "schema requirement for producers", "--enable", _ENABLED,
           "schemaValidationEnforced", "schemaValidationEnforced", removable=_NEVER),
    Policy("is-allow-auto-update-schema", "permission for producers to upload new schemas",
           "--enable", _ENABLED, topic="", removable=_NEVER),
    Policy("encryption-required", "encryption requirement for messages", "--enable", _ENABLED,
           topic="", removable=_NEVER),
    Policy("auto-subscription-creation", "automatic creation of subscriptions", "--enable",
           {"allowAutoSubscriptionCreation": _ENABLED}),
)  # fmt: skip

_QUOTA = {
    "limitSize": parsed(size_bytes, "--limit -l", "Largest backlog: 10M, 16G, ...", "-1"),
    "limitTime": parsed(seconds, "--limitTime -lt", "Oldest message: 10m, 3h, 2d, ...", "-1"),
    "policy": name_of(
        "--policy -p", "Beyond the limit",
        "producer_request_hold", "producer_exception", "consumer_backlog_eviction"),
}  # fmt: skip


def _quotas(*, topics: bool) -> tuple[Verb, ...]:
    """Return the commands for backlog quotas, which have a separate quota for size and for age."""
    of, path, _ = _TOPICS if topics else _NAMESPACES
    one = f"{path}/backlogQuota?backlogQuotaType={{quota_type}}"
    return (
        Verb("get-backlog-quotas", f"Show the backlog quotas of a {of}.",
             f"GET {path}/backlogQuotaMap{_APPLIED[topics]}",
             f"get the backlog quotas of {{{of}}}", value),
        Verb("set-backlog-quota",
             "Set the largest size or age of a backlog, and what happens beyond it.",
             f"POST {one} {{*}}", f"set the backlog quota of {{{of}}}",
             Done(f"updated {{{of}}}", "limitSize limitTime policy"),
             "-l 10M -p producer_exception", _QUOTA),
        Verb("remove-backlog-quota", "Remove a backlog quota.", f"DELETE {one}",
             f"remove the backlog quota of {{{of}}}",
             Done(f"updated {{{of}}}", "removed=quota_type")),
    )  # fmt: skip


def policy_verbs(*, topics: bool) -> Iterator[Verb]:
    """Yield the commands of all policies: of topics if ``topics``, otherwise of namespaces."""
    for row in POLICIES:
        if row.end(topics=topics):
            yield from row.verbs(topics=topics)
    yield from _quotas(topics=topics)
