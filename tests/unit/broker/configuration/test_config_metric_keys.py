"""Pulsar's keys select the metrics shown; our keys bound their number."""

from broker.configuration.config import BrokerConfig, MetricKeys


def test_the_metric_keys_select_topic_consumer_and_producer_metrics() -> None:
    config = BrokerConfig.from_properties(
        {
            "exposeTopicLevelMetricsInPrometheus": "false",
            "exposeConsumerLevelMetricsInPrometheus": "true",
            "exposeProducerLevelMetricsInPrometheus": "true",
            "floodgateMaxMetricSubjects": "7",
        }
    )
    assert config.metrics == MetricKeys(
        topics=False, consumers=True, producers=True, most_subjects=7
    )
    assert BrokerConfig.from_properties({}).metrics == MetricKeys(
        topics=True, consumers=False, producers=False, most_subjects=2_000
    )
