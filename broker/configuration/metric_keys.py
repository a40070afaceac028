"""The configuration keys of the metrics of messages."""

from __future__ import annotations

from server.configuration.settings import Key, Settings


class MetricKeys(Settings):
    """Subjects with metrics of their own."""

    topics: bool = Key("exposeTopicLevelMetricsInPrometheus")
    """Topics and subscriptions instead of namespaces."""
    consumers: bool = Key("exposeConsumerLevelMetricsInPrometheus")
    producers: bool = Key("exposeProducerLevelMetricsInPrometheus")
    most_subjects: int = Key("floodgateMaxMetricSubjects")
    """Most topics, subscriptions, consumers and producers with metrics of their own; the rest
    counts for its namespace."""
