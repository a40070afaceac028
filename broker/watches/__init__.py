"""Topic list watches: clients that are sent the changes of a namespace's topics."""
