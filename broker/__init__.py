"""The broker, which serves topics and messages over Pulsar's binary protocol and admin REST."""
