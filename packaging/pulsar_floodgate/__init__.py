"""A broker and a proxy for tests of Apache Pulsar's clients. In wheels alone, as these files."""
