"""The scenario ``watch-churn``: topics come and go under the eyes of watchers."""
