"""The command line `floodgate-admin`: one module per subject."""
