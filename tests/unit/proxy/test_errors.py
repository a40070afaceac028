"""How a broker's errors reach the proxy's client, by profile and kind of request."""

import pytest

import proto.PulsarApi_pb2 as pb
from client.connection.errors import DisconnectedError, RequestTimeoutError, RequestTooLargeError
from client.exceptions import ConnectError, ServerResponseError
from proxy.errors import ErrorTranslation, PulsarErrorTranslation

PULSAR, OURS = PulsarErrorTranslation(), ErrorTranslation()
REFUSED = ServerResponseError(pb.TooManyRequests, 'not "now"')
LARGE = RequestTooLargeError(10, 5)


class Broker:
    peer, local, last_request_id = "127.0.0.1:6650", "127.0.0.1:5000", 7


def test_in_profile_floodgate_a_brokers_refusal_is_passed_on_unchanged() -> None:
    for translate in (OURS.of, OURS.of_partitions):
        error = translate(REFUSED, Broker())
        assert (error.server_error, error.message) == (pb.TooManyRequests, 'not "now"')


def test_in_profile_pulsar_a_refusal_becomes_service_not_ready_with_unescaped_json() -> None:
    error = PULSAR.of(REFUSED, Broker())
    assert error.server_error == pb.ServiceNotReady
    # The text is never escaped.
    assert error.message == (
        '{"errorMsg":"not "now"","reqId":7, '
        '"remote":"127.0.0.1/127.0.0.1:6650", "local":"/127.0.0.1:5000"}'
    )


@pytest.mark.parametrize("code", [pb.AuthenticationError, pb.AuthorizationError])
def test_in_profile_pulsar_authentication_and_authorization_errors_keep_their_code(
    code: int,
) -> None:
    assert PULSAR.of(ServerResponseError(code, "no"), Broker()).server_error == code


def test_in_profile_pulsar_a_partition_query_keeps_the_brokers_code() -> None:
    error = PULSAR.of_partitions(ServerResponseError(pb.TopicNotFound, "none"), None)
    assert error.server_error == pb.TopicNotFound
    assert error.message.startswith('{"errorMsg":"none","reqId":')


def test_only_in_profile_pulsar_querying_partitions_of_an_invalid_name_is_unknown_error() -> None:
    refusal = ServerResponseError(pb.InvalidTopicName, "V1")
    assert PULSAR.of_partitions(refusal, None).server_error == pb.UnknownError
    assert OURS.of_partitions(refusal, None).server_error == pb.InvalidTopicName


@pytest.mark.parametrize("translation", [PULSAR, OURS])
@pytest.mark.parametrize(
    "error",
    [ConnectError("b:1 cannot be reached"), RequestTimeoutError("late"), DisconnectedError("b:1")],
)
def test_an_unreachable_broker_is_reported_as_service_not_ready(translation, error) -> None:
    for translate in (translation.of, translation.of_partitions):
        found = translate(error, None)
        assert found.server_error == pb.ServiceNotReady
        assert found.message


def test_a_lost_connection_is_reported_in_the_wording_of_each_profile() -> None:
    lost = DisconnectedError("10.0.0.1:6650")
    assert PULSAR.of(lost, None).message == "Disconnected from server at 10.0.0.1/10.0.0.1:6650"
    assert OURS.of(lost, None).message == "Disconnected from server at 10.0.0.1:6650"


def test_a_too_large_request_is_answered_with_not_allowed_error() -> None:
    assert OURS.of(LARGE, None).server_error == pb.NotAllowedError
    assert OURS.of_partitions(LARGE, None).server_error == pb.NotAllowedError
