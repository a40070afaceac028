import pytest

import proto.PulsarApi_pb2 as pb
from loadgen.engine.rows import masked, refusal_reason

TOO_MANY = pb.ServerError.TooManyRequests


def test_the_reason_of_a_refusal_is_the_error_name_and_the_message() -> None:
    reason = refusal_reason(TOO_MANY, "Failed due to heap memory limit exceeded")
    assert reason == "TooManyRequests: Failed due to heap memory limit exceeded"


def test_only_the_message_of_the_proxys_json_is_kept() -> None:
    # Given two refusals that differ by request id and ports
    texts = [
        f'{{"errorMsg":"Cannot \\"acquire\\"","reqId":{number}, '
        f'"remote":"127.0.0.1/127.0.0.1:6650", "local":"/127.0.0.1:{number}"}}'
        for number in (60294, 41220)
    ]
    reasons = {refusal_reason(TOO_MANY, text) for text in texts}
    assert reasons == {'TooManyRequests: Cannot "acquire"'}


def test_the_message_of_json_after_a_java_exception_is_kept() -> None:
    text = 'org.x.Y$TooManyRequestsException: {"errorMsg":"no","reqId":1}'
    assert refusal_reason(TOO_MANY, text) == "TooManyRequests: no"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Disconnected from server at localhost/127.0.0.1:6650", "<address>"),
        ("Disconnected from server at 10.0.0.7:41220", "<address>"),
        ("Disconnected from server at [::1]:6650", "<address>"),
        ("Disconnected from server at broker-7.internal:6650", "<address>"),
    ],
)
def test_addresses_in_a_reason_are_masked(text: str, expected: str) -> None:
    assert masked(text) == f"Disconnected from server at {expected}"


def test_numbers_in_a_reason_are_masked() -> None:
    text = "Requested permits=1512890 is larger than maxPermits=1,048,576"
    assert masked(text) == "Requested permits=<n> is larger than maxPermits=<n>"


def test_ordinary_words_in_a_reason_are_not_masked() -> None:
    text = "java.lang.IllegalArgumentException: no: such thing"
    assert masked(text) == text


def test_an_unknown_error_code_keeps_its_number() -> None:
    assert refusal_reason(9999, "new").startswith("ServerError 9999: ")
