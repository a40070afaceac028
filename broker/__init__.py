"""The broker: topics, stores and listings; answers the binary protocol and the admin REST."""
