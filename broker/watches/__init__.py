"""Topic list watches: what a client is told when the topics of a namespace change."""
