"""The error for an unusable answer of a plug-in."""


class UnusableAnswerError(Exception):
    """A plug-in returned something other than a list of valid topic names.

    The text completes the sentence "The plug-in answered".
    """
