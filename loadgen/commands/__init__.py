"""The command line `loadgen`, a module for each command."""
