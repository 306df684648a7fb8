"""Overlaps of narrow networks after every giant step, and their limit of short steps."""
