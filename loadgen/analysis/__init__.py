"""What finished runs say: thresholds, histograms, limits of the generator, comparisons."""
