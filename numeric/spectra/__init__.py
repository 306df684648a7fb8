"""Spectra of random matrices: resolvents, densities with their edges, outliers."""
