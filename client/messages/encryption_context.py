"""The encryption of a message received and not decrypted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from client.messages.enums import CompressionType

if TYPE_CHECKING:
    import proto.PulsarApi_pb2 as pb


class EncryptionKey:
    """A key used to encrypt a message's own key.

    Attributes:
        key: The key's name.
        value: The message's key, encrypted.
        metadata: The producer's metadata of the key.
    """

    def __init__(self, data: pb.EncryptionKeys) -> None:
        self.key = data.key
        self.value = data.value
        self.metadata = {pair.key: pair.value for pair in data.metadata}

    def __repr__(self) -> str:
        size = len(self.value)
        return f"EncryptionKey(key={self.key}, value_len={size}, metadata={self.metadata})"


class EncryptionContext:
    """The parameters for a program's own decryption of a payload.

    Args:
        metadata: The entry's metadata.
    """

    def __init__(self, metadata: pb.MessageMetadata) -> None:
        self._metadata = metadata

    def keys(self) -> list[EncryptionKey]:
        """Return the keys used to encrypt the message's own key."""
        return [EncryptionKey(data) for data in self._metadata.encryption_keys]

    def param(self) -> bytes:
        """Return the algorithm's parameter."""
        return self._metadata.encryption_param

    def algorithm(self) -> str:
        """Return the algorithm's name."""
        return self._metadata.encryption_algo

    def compression_type(self) -> CompressionType:
        """Return the compression applied before encryption."""
        return CompressionType(self._metadata.compression)

    def uncompressed_message_size(self) -> int:
        """Return the size before compression; 0 without compression."""
        return self._metadata.uncompressed_size

    def batch_size(self) -> int:
        """Return the number of messages in the payload; -1 if unbatched."""
        if not self._metadata.HasField("num_messages_in_batch"):
            return -1
        return self._metadata.num_messages_in_batch

    def is_decryption_failed(self) -> bool:
        """Return True: this client never decrypts."""
        return True

    def __repr__(self) -> str:
        return (
            f"EncryptionContext(algorithm={self.algorithm()}, "
            f"compression_type={self.compression_type().name}, keys={self.keys()})"
        )
