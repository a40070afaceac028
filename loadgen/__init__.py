"""A load generator for Pulsar's topic discovery: it makes topics, runs clients, writes reports."""
