"""Memory of topic lists: separate budgets of heap and direct memory (PIP-442)."""
