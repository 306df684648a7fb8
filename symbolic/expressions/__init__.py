"""Expressions of one real variable: read, written, and known by their kinks and singularities."""
