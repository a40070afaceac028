"""``floodgate-admin`` and the library below it: Pulsar's admin REST, from the client's side."""
