"""What is common to all publishing: receipts, limits, figures."""
