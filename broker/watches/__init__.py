"""Topic list watches, which notify clients of topics that are created or deleted in a namespace."""
