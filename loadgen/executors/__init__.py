"""Processes that run tasks: local ones, or those of Spark."""
