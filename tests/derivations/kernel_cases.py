"""Small systems of equations as kernels, for tests."""

from __future__ import annotations

import sympy as sp

import giantstep as gs

z = sp.Symbol("z", real=True)
x, a = sp.symbols("x a", positive=True)
y, b = sp.symbols("y b", real=True)


def mean(f):
    return gs.GaussianExpectation(f, z)


def kernel_of(equations, *parameters, **options):
    system = gs.SaddlePointSystem.from_fixed_point(
        equations, name="system", parameters=parameters, **options
    )
    return gs.lower(system)
