"""Leap indices and staircases: which directions a network can learn, decided exactly."""
