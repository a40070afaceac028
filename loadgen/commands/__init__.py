"""The command line `loadgen`, one module for each command."""
