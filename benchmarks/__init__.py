"""What is fast, side by side with what a user would pick instead: python -m benchmarks."""
