"""Series of solutions in a small quantity: large samples, small ridge penalties, small steps."""
