"""Authorization over real sockets."""
