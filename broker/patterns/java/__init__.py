"""A translator of java.util.regex patterns for Python's ``regex`` module."""
