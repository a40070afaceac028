"""The error of an unusable answer of a plug-in."""


class UnusableAnswerError(Exception):
    """A plug-in returned an unusable list.

    The text completes the sentence "The plug-in answered".
    """
