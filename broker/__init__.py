"""The broker, which serves topics and messages by Pulsar's binary protocol and admin REST API."""
