"""The report: a page with the tables and pictures of several runs."""
