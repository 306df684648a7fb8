"""Giant gradient steps (Dandi, Krzakala, Loureiro, Pesce, Stephan, arXiv 2305.18270)."""
