"""Servers with less memory than a storm requires."""
