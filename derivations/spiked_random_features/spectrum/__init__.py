"""Spectra of the features: bulk, atoms, outliers, Stieltjes transform."""
