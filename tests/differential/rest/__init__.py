"""Random odd calls of the admin REST, played to a real Pulsar and to Floodgate."""
