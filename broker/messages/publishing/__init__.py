"""The parts of publishing that all topics share: receipts, limits, figures."""
