"""Judges finished runs: thresholds, histograms, limits of the generator, comparisons."""
