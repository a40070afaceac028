"""The command line `floodgate-admin`: one module for each subject."""
