"""Steps between order one and √N: nonlinear spikes of the features (Moniri et al. 2310.07891)."""
