"""Discovery of the topics that match a pattern, by polls and by topic-list watches.

A discovery schedule decides when to send requests: the client's own schedule, or one that imitates
an official client.
"""
