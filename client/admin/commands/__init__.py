"""The command line ``floodgate-admin``, with one module for each group of commands."""
