"""HTML pages and SVG pictures of one or several runs, with tables and charts."""
