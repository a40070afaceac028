import base64
import json

import pytest
from google.protobuf.descriptor_pb2 import FileDescriptorSet

from broker.schemas.checks import root_message, unreadable
from broker.schemas.errors import SchemaRefusedError
from broker.schemas.schema import Schema
from tests.support.schemas import checks, stored


def definition(message: str = "M", **changed: object) -> bytes:
    files = FileDescriptorSet()
    files.file.add(name="f.proto", package="p").message_type.add(name=message)
    found = {
        "fileDescriptorSet": base64.b64encode(files.SerializeToString()).decode(),
        "rootMessageTypeName": f"p.{message}",
        "rootFileDescriptorName": "f.proto",
    }
    return json.dumps(found | changed).encode()


def test_a_valid_definition_is_readable_with_its_root_message() -> None:
    assert not unreadable(definition())
    assert root_message(definition()) == "p.M"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b"{}",
        b"nonsense",
        b"\xff",
        b"[" * 5_000,
        definition(fileDescriptorSet="?"),
        definition(fileDescriptorSet="AAAA"),
        definition(rootFileDescriptorName="other"),
        definition(rootMessageTypeName=None),
    ],
)
def test_malformed_definitions_are_unreadable(data: bytes) -> None:
    assert unreadable(data)


async def test_a_change_of_the_root_message_is_refused() -> None:
    existing = [stored(0, definition(), "PROTOBUF_NATIVE")]
    same = await checks().version_of(
        Schema("PROTOBUF_NATIVE", definition(extra=1)), existing, "FULL"
    )
    with pytest.raises(SchemaRefusedError) as caught:
        await checks().check(Schema("PROTOBUF_NATIVE", definition("N")), existing, "FULL")
    assert same is None
    assert caught.value.refusal.text == (
        "Protobuf root message change is not allowed under the 'FULL' strategy. Original message "
        "name: 'p.M', new message name: 'p.N'."
    )
