"""General convex losses on spiked random features: classification and robust regression."""
