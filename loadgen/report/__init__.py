"""The report: one page with the tables and pictures of several runs."""
