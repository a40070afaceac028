"""Verbs of policies: of ``floodgate-admin namespaces``, ``topicPolicies`` and ``topics``."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any

import typer

from client.admin.commands.call import Call, Changed
from client.admin.commands.options import Namespace, Topic, verb
from client.admin.commands.policies.table import POLICIES
from client.admin.commands.units import one_of, seconds, size_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from client.admin.calls import Subject
    from client.admin.commands.policies.table import Option, PolicyVerbs

topic_policies = typer.Typer(
    no_args_is_help=True,
    help="Policies of single topics.",
    epilog="""Examples:
floodgate-admin topicPolicies set-retention acme/orders/eu -t 10m -s 100M
floodgate-admin topicPolicies get-retention acme/orders/eu --applied
floodgate-admin topicPolicies VERB --help""",
)
Applied = Annotated[
    bool,
    typer.Option(
        "--applied",
        "-ap",
        help="Show the effective value, also where the namespace or the broker sets it.",
    ),
]
QuotaType = Annotated[
    str,
    typer.Option(
        "--type",
        "-t",
        parser=one_of("destination_storage", "message_age"),
        metavar="NAME",
        help="Kind of quota: destination_storage or message_age.",
    ),
]


def add_policies(group: typer.Typer, *, topics: bool) -> None:
    """Give a group the verbs of all policies of namespaces, or of topics."""
    for row in POLICIES:
        path = row.topic if topics else row.namespace
        if path:
            _add(group, row, path, topics=topics)
    _add_quotas(group, topics=topics)


def _add(group: typer.Typer, row: PolicyVerbs, path: str, *, topics: bool) -> None:
    of = "topic" if topics else "namespace"
    default = "that of its namespace" if topics else "the default of the broker"

    def get(call: Call, subject: Subject, applied: bool = False) -> None:
        parameters = {"applied": applied}
        call.value(
            f"get {row.name} of {subject}",
            lambda admin: admin.calls.ask("GET", subject, path, parameters=parameters),
        )

    def change(call: Call, subject: Subject, **given: Any) -> None:  # noqa: ANN401 - of the table
        body = row.body(given)
        in_query = topics and row.in_query
        call.change(
            f"set {row.name} of {subject}",
            Changed("updated", subject, **{row.name: body}),
            lambda admin: admin.calls.ask(
                row.methods[topics],
                subject,
                path,
                parameters={row.in_query: str(body)} if in_query else None,
                body=None if in_query else body,
            ),
        )

    def remove(call: Call, subject: Subject) -> None:
        call.change(
            f"remove {row.name} of {subject}",
            Changed("updated", subject, removed=row.name),
            lambda admin: admin.calls.ask("DELETE", subject, path),
        )

    example = f"floodgate-admin {'topicPolicies' if topics else 'namespaces'}"
    thing = "acme/orders/eu" if topics else "acme/orders"
    shown = [_parameter("applied", Applied, False)] if topics else []
    _verb(
        group,
        f"get-{row.name}",
        get,
        shown,
        topics=topics,
        text=f"Show the {row.what} of a {of}.\n\nExamples:\n{example} get-{row.name} {thing}",
    )
    options = [_of_option(option) for option in row.options]
    _verb(
        group,
        f"set-{row.name}",
        change,
        options,
        topics=topics,
        text=f"Set the {row.what} of a {of}.\n\n"
        f"Examples:\n{example} set-{row.name} {thing} {row.example}",
    )
    if row.removable[topics]:
        _verb(
            group,
            f"remove-{row.name}",
            remove,
            [],
            topics=topics,
            text=f"Remove the {row.what} of a {of}: {default} applies again.\n\n"
            f"Examples:\n{example} remove-{row.name} {thing}",
        )


def _of_option(option: Option) -> inspect.Parameter:
    if option.default is ...:
        return _parameter(option.name, option.annotation)
    return _parameter(option.name, option.annotation, option.default)


def _parameter(name: str, annotation: object, *default: object) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    if default:
        return inspect.Parameter(name, kind, annotation=annotation, default=default[0])
    return inspect.Parameter(name, kind, annotation=annotation)


def _verb(
    group: typer.Typer,
    name: str,
    function: Callable[..., None],
    options: list[inspect.Parameter],
    *,
    topics: bool,
    text: str,
) -> None:
    """Make a function of the table a verb."""
    first = inspect.Parameter.POSITIONAL_OR_KEYWORD
    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter("call", first, annotation=Call),
            inspect.Parameter("subject", first, annotation=Topic if topics else Namespace),
            *options,
        ]
    )
    function.__doc__ = text
    verb(group, name)(function)


# -- backlog quotas: one for each of two types -----------------------------------------------------


def _add_quotas(group: typer.Typer, *, topics: bool) -> None:
    def get(call: Call, subject: Subject, applied: bool = False) -> None:
        parameters = {"applied": applied}
        call.value(
            f"get the backlog quotas of {subject}",
            lambda admin: admin.calls.ask("GET", subject, "backlogQuotaMap", parameters=parameters),
        )

    def change(call: Call, subject: Subject, size: int, time: int, policy: str, kind: str) -> None:
        body = {"limitSize": size, "limitTime": time, "policy": policy}
        parameters = {"backlogQuotaType": kind}
        call.change(
            f"set the backlog quota of {subject}",
            Changed("updated", subject, **body),
            lambda admin: admin.calls.ask(
                "POST", subject, "backlogQuota", parameters=parameters, body=body
            ),
        )

    def remove(call: Call, subject: Subject, kind: str) -> None:
        parameters = {"backlogQuotaType": kind}
        call.change(
            f"remove the backlog quota of {subject}",
            Changed("updated", subject, removed=kind),
            lambda admin: admin.calls.ask("DELETE", subject, "backlogQuota", parameters=parameters),
        )

    kind = _parameter("kind", QuotaType, "destination_storage")
    of = "topic" if topics else "namespace"
    example = f"floodgate-admin {'topicPolicies' if topics else 'namespaces'}"
    thing = "acme/orders/eu" if topics else "acme/orders"
    shown = [_parameter("applied", Applied, False)] if topics else []
    _verb(
        group,
        "get-backlog-quotas",
        get,
        shown,
        topics=topics,
        text=f"Show the backlog quotas of a {of}.\n\n"
        f"Examples:\n{example} get-backlog-quotas {thing}",
    )
    _verb(
        group,
        "set-backlog-quota",
        change,
        [*_QUOTA, kind],
        topics=topics,
        text="Set the largest size or age of a backlog, and what happens beyond it.\n\n"
        f"Examples:\n{example} set-backlog-quota {thing} -l 10M -p producer_exception",
    )
    _verb(
        group,
        "remove-backlog-quota",
        remove,
        [kind],
        topics=topics,
        text=f"Remove a backlog quota.\n\nExamples:\n{example} remove-backlog-quota {thing}",
    )


_QUOTA = [
    _parameter(
        "size",
        Annotated[
            int,
            typer.Option(
                "--limit",
                "-l",
                parser=size_bytes,
                metavar="SIZE",
                help="Largest backlog: 10M, 16G, ...",
            ),
        ],
        "-1",
    ),
    _parameter(
        "time",
        Annotated[
            int,
            typer.Option(
                "--limitTime",
                "-lt",
                parser=seconds,
                metavar="TIME",
                help="Oldest message: 10m, 3h, 2d, ...",
            ),
        ],
        "-1",
    ),
    _parameter(
        "policy",
        Annotated[
            str,
            typer.Option(
                "--policy",
                "-p",
                parser=one_of(
                    "producer_request_hold", "producer_exception", "consumer_backlog_eviction"
                ),
                metavar="NAME",
                help="Beyond the limit: producer_request_hold, producer_exception, "
                "consumer_backlog_eviction.",
            ),
        ],
    ),
]
