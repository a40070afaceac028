"""HTML pages about one or several runs, with tables and charts."""
