"""Limiting spectra of random matrices: what all theories' spectra have in common."""
