"""Topic list watches, which tell clients about created and deleted topics of a namespace."""
