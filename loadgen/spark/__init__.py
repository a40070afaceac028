"""Spark sessions, the Java they need, and what they would do with the machine."""
