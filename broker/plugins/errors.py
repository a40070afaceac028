"""Errors of plug-ins' answers."""


class UnusableAnswerError(Exception):
    """An unusable list; the text continues the word "answered"."""
