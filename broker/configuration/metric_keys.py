"""The configuration keys of the metrics of messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from server.configuration.known_keys import CheckedKeys

MOST_SUBJECTS_KEY = "floodgateMaxMetricSubjects"


class MetricKeys(NamedTuple):
    """Subjects with metrics of their own.

    Attributes:
        topics: exposeTopicLevelMetricsInPrometheus: topics and subscriptions instead of namespaces.
        consumers: exposeConsumerLevelMetricsInPrometheus: their consumers too.
        producers: exposeProducerLevelMetricsInPrometheus: their producers too.
        most_subjects: floodgateMaxMetricSubjects: most topics, subscriptions, consumers and
            producers with metrics of their own; the rest counts for its namespace.
    """

    topics: bool = True
    consumers: bool = False
    producers: bool = False
    most_subjects: int = 2_000


def metric_keys(checked: CheckedKeys) -> MetricKeys:
    """Parse the keys."""
    return MetricKeys(
        topics=checked.flag("exposeTopicLevelMetricsInPrometheus"),
        consumers=checked.flag("exposeConsumerLevelMetricsInPrometheus"),
        producers=checked.flag("exposeProducerLevelMetricsInPrometheus"),
        most_subjects=checked.integer(MOST_SUBJECTS_KEY),
    )
