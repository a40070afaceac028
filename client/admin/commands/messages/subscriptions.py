"""Verbs about subscriptions as such."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.admin.commands.call import Call, Changed
from client.admin.commands.messages.options import MaybeId, Subscription  # noqa: TC001 - typer evaluates it
from client.admin.commands.options import Force, Pairs, Topic, Update, merged

if TYPE_CHECKING:
    from collections.abc import Callable


def subscriptions(call: Call, topic: Topic) -> None:
    """List the subscriptions of a topic.

    Examples:
    floodgate-admin topics subscriptions acme/orders/eu
    """
    call.few(
        f"list the subscriptions of {topic}",
        lambda admin: admin.calls.ask("GET", topic, "subscriptions"),
    )


def create_subscription(
    call: Call, topic: Topic, subscription: Subscription, message_id: MaybeId = None
) -> None:
    """Create a subscription, at the end of a topic or at the message of -m.

    Examples:
    floodgate-admin topics create-subscription acme/orders/eu -s billing
    floodgate-admin topics create-subscription acme/orders/eu -s audit -m earliest
    """
    call.change(
        f"create the subscription {subscription} of {topic}",
        Changed("created", subscription, topic=str(topic)),
        lambda admin: admin.calls.ask("PUT", topic, "subscription", subscription, body=message_id),
    )


def unsubscribe(call: Call, topic: Topic, subscription: Subscription, force: Force = False) -> None:
    """Delete a subscription.

    Examples:
    floodgate-admin topics unsubscribe acme/orders/eu -s billing
    """
    call.change(
        f"delete the subscription {subscription} of {topic}",
        Changed("deleted", subscription, topic=str(topic)),
        lambda admin: admin.calls.ask(
            "DELETE", topic, "subscription", subscription, parameters={"force": force}
        ),
    )


def get_subscription_properties(call: Call, topic: Topic, subscription: Subscription) -> None:
    """Show the properties of a subscription.

    Examples:
    floodgate-admin topics get-subscription-properties acme/orders/eu -s billing
    """
    call.table(
        f"get the properties of {subscription}",
        lambda admin: admin.calls.ask("GET", topic, "subscription", subscription, "properties"),
    )


def update_subscription_properties(
    call: Call, topic: Topic, subscription: Subscription, properties: Update
) -> None:
    """Replace the properties of a subscription.

    Examples:
    floodgate-admin topics update-subscription-properties acme/orders/eu -s billing -p team=red
    """
    given: Pairs = merged(properties)
    call.change(
        f"set the properties of {subscription}",
        Changed("updated", subscription, properties=given),
        lambda admin: admin.calls.ask(
            "PUT", topic, "subscription", subscription, "properties", body=given
        ),
    )


VERBS: dict[str, Callable[..., None]] = {
    "subscriptions": subscriptions,
    "create-subscription": create_subscription,
    "unsubscribe": unsubscribe,
    "get-subscription-properties": get_subscription_properties,
    "update-subscription-properties": update_subscription_properties,
}
