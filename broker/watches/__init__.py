"""Topic list watches: clients receive the changes of a namespace's topics."""
