"""The servers that loadgen starts for a scenario: made from its document, gone after the run."""
