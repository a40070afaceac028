"""The scenario ``discovery``: groups of clients that find topics as the real ones do."""
