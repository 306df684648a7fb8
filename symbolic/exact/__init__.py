"""Exact constants: fields in which they are computed with, and proven intervals."""
