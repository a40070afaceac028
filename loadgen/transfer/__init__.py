"""Topics moved into a running server, checked there, and moved out of one."""
