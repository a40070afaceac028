"""Long proofs: soaks, storms, kill loops and large imports. Run by ``make proof`` only."""
