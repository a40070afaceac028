import pytest

from loadgen.topics.data_source import plan_of_options
from loadgen.topics.plan import TopicPlan, TopicShape


@pytest.mark.parametrize(
    ("options", "plan", "tasks"),
    [
        ({}, TopicPlan(1_000_000, 100, 7), 1),
        ({"Topics": "2500000", "seed": "3"}, TopicPlan(2_500_000, 100, 3), 3),
        (
            {"topics": "50", "namespaces": "5", "partitions_of_frame": "2", "tenants": "2",
             "plain_share": "0", "partitions": "one-topic", "properties": "none"},
            TopicPlan(
                50, 5, 7,
                TopicShape(plain_share=0, tenants=2, partitions="one-topic", properties="none"),
            ),
            2,
        ),
    ],
)  # fmt: skip
def test_data_source_options_are_parsed_into_a_topic_plan(
    options: dict[str, str], plan: TopicPlan, tasks: int
) -> None:
    assert plan_of_options(options) == (plan, tasks)


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("topic", "5", "'topic' is no option of floodgate; it has mean_name_bytes, plain"),
        ("topics", "x", "option topics of floodgate: Input should be a valid integer"),
        ("partitions", "zipf:9", "'zipf:9'; they must be few"),
        ("topics", "5", "5 topics cannot fill 100 namespaces"),
    ],
)
def test_an_invalid_data_source_option_is_refused_by_name(
    option: str, text: str, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        plan_of_options({option: text})
