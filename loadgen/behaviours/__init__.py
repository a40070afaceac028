"""What clients of a load do: one module a behaviour."""
