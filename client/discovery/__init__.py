"""Discovery of the topics that match a pattern, by polls and by topic-list watches.

The times of requests are the client's own, or those of several official clients.
"""
