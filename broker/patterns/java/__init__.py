"""A translator from java.util.regex patterns to the syntax of Python's ``regex`` module."""
