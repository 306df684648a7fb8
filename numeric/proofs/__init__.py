"""Proven enclosures of integrals over the line, minima and roots of systems, with python-flint."""
