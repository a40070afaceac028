"""The broker's commands: a table row each, and handlers by subject."""
