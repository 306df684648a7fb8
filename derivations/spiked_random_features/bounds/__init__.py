"""Bounds of the test error, its limits, and the functions that realise them."""
