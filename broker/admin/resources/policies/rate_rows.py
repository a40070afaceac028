"""Policies about rates: publishing, dispatching and subscribing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from broker.admin.resources.policies.row import Empty, Null, Place, PolicyRow
from broker.admin.resources.policies.values import (
    Field,
    boolean,
    long_number,
    number,
    object_of,
)
from broker.authorization.operations import PolicyName

if TYPE_CHECKING:
    from collections.abc import Callable

    from broker.authorization.operations import Needs
    from broker.configuration.config import BrokerConfig
    from broker.policies.effective import EffectivePolicies, Rate


_RATE = object_of(
    Field("dispatchThrottlingRateInMsg", number, 0),
    Field("dispatchThrottlingRateInByte", long_number, 0),
    Field("relativeToPublishRate", boolean, False),
    Field("ratePeriodInSecond", number, 0),
)


def _dispatch_rate(
    key: str,
    needs: Needs,
    path: str,
    rate: Callable[[EffectivePolicies, BrokerConfig], Rate],
    null: Null,
) -> PolicyRow:
    return PolicyRow(
        key,
        needs,
        _RATE,
        Place(path),
        Place(path, null=null),
        default=lambda own, config: rate_body(rate(own, config)),
        per_cluster=True,
    )


def rate_body(rate: Rate) -> dict[str, object]:
    """Return the body of a dispatch rate."""
    return {
        "dispatchThrottlingRateInMsg": rate.messages,
        "dispatchThrottlingRateInByte": rate.size_bytes,
        "relativeToPublishRate": rate.relative,
        "ratePeriodInSecond": rate.period_seconds,
    }


read_rate = _RATE


RATES = (
    PolicyRow(
        "publishMaxMessageRate",
        PolicyName.RATE,
        object_of(
            Field("publishThrottlingRateInMsg", number, -1),
            Field("publishThrottlingRateInByte", long_number, -1),
        ),
        Place("publishRate"),
        Place("publishRate", null=Null.KEEPS, unset=Empty.NO_CONTENT),
        per_cluster=True,
    ),
    _dispatch_rate(
        "topicDispatchRate",
        PolicyName.RATE,
        "dispatchRate",
        lambda own, _: own.dispatch_rate,
        Null.KEEPS,
    ),
    _dispatch_rate(
        "subscriptionDispatchRate",
        PolicyName.RATE,
        "subscriptionDispatchRate",
        lambda own, _: own.subscription_dispatch_rate,
        Null.KEEPS,
    ),
    _dispatch_rate(
        "replicatorDispatchRate",
        PolicyName.REPLICATION_RATE,
        "replicatorDispatchRate",
        lambda own, _: own.replicator_dispatch_rate,
        Null.REMOVES,
    ),
    PolicyRow(
        "clusterSubscribeRate",
        PolicyName.RATE,
        object_of(
            Field("subscribeThrottlingRatePerConsumer", number, -1),
            Field("ratePeriodInSecond", number, 30),
        ),
        Place("subscribeRate"),
        Place("subscribeRate", null=Null.KEEPS),
        default=lambda own, _: {
            "subscribeThrottlingRatePerConsumer": own.subscribe_rate.messages,
            "ratePeriodInSecond": own.subscribe_rate.period_seconds,
        },
        per_cluster=True,
    ),
)
