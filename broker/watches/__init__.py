"""Topic list watches, which notify clients of created and deleted topics in a namespace."""
