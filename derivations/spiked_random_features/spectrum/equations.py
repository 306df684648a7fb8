r"""Spectrum of the feature covariance: what the saddle-point equations say at λ = −z.

The covariance of the features on a training set is :math:`K = p^{-1}\sum_\mu\varphi_\mu
\varphi_\mu^\top`, of shape p × p. The order parameter V_2 of a ridge readout is the trace of its
resolvent, :math:`V_2 = p^{-1}\operatorname{tr}(K + \lambda)^{-1}`, so the block (V_1, V_2) of the
equations, which knows nothing of the labels, is the Stieltjes transform of its spectrum at
λ = −z. The bulk is where the solution leaves the real axis. An outlier is a real z outside the
bulk at which the next block, the linear system of m and ϑ, becomes singular: the resolvent is
infinite along a combination of the all-ones vector and B v.

Everything here is derived from :mod:`.physics`; nothing is written a second time. Source of
the block: Cui et al., arXiv 2402.04980, Result 3.3 and its appendix on the spectrum; the
conditions of outliers are derived here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import sympy as sp

from ....symbolic.activations import Activation
from ....symbolic.equations import FreeEnergy, saddle_point_equations, stationarity
from ....symbolic.gaussian import GaussianExpectation
from ....symbolic.lowering.map_source import map_source, node_source
from ....symbolic.lowering.tables import table_source
from ....symbolic.random_matrix import MarchenkoPasturAverage, Resolvent, companion
from ....symbolic.regularity import Parity
from .. import physics as symbols
from ..physics import IDENTIFIERS, spiked_free_energy
from .law import SpectrumDerivation

z = sp.Symbol("z")
V1, V2 = symbols.V1, symbols.V2
# Parameters of the equations, and those of the tables.
PARAMETERS = (
    symbols.alpha, symbols.beta, symbols.c, symbols.inverse_width, symbols.norm_overlap,
)  # fmt: skip
TABLE_PARAMETERS = (symbols.r, symbols.c)
_TABLES = (symbols.mu0, symbols.mu1, symbols.mu2_squared, symbols.chi)


@dataclass(frozen=True)
class SpectrumEquations:
    """The equations of the spectrum as SymPy objects.

    Attributes
    ----------
    fixed_point : tuple of Expr
        Right-hand sides of V_1 = … and V_2 = … in z, V_1, V_2: rational, with 𝔼 nodes over κ. For
        Im z > 0 they map the upper half planes of V_1, V_2 to themselves, so that there is one
        solution there.
    outlier_matrix : Matrix
        Of the linear system of (m, ϑ), or of ϑ alone where the features have no mean, at the
        inverse width 1/p; an outlier is a real z outside the bulk where it is singular.
    definitions : mapping from applied function to Expr
        The functions of κ, with their meaning.
    even : bool
        All integrands are even in κ.
    """

    fixed_point: tuple[sp.Expr, sp.Expr]
    outlier_matrix: sp.Matrix
    definitions: dict[sp.Expr, sp.Expr]
    even: bool

    @property
    def outlier_condition(self) -> sp.Expr:
        """The determinant of the outlier matrix; vanishes at all outliers of width p."""
        return self.outlier_matrix.det(method="berkowitz")

    @property
    def second_outlier(self) -> sp.Expr:
        """What vanishes at outliers that stay where they are for p → ∞.

        The entry of ϑ after m is eliminated, at 1/p = 0.
        """
        matrix = self.outlier_matrix.xreplace({symbols.inverse_width: sp.S.Zero})
        if matrix.shape == (1, 1):
            return matrix[0, 0]
        return sp.expand(matrix[1, 1] - matrix[0, 1] * matrix[1, 0] / matrix[0, 0])

    @property
    def denominator(self) -> sp.Expr:
        """What the integrands over κ are divided by; it has no zero for Im z > 0."""
        found = {
            power.base
            for average in _averages(sp.Tuple(*self.fixed_point))
            for power in average.integrand.atoms(sp.Pow)
            if power.exp.is_negative and power.base.free_symbols & {V1, V2}
        }
        (denominator,) = found or {sp.S.One}
        return denominator

    def jacobian(self) -> sp.Matrix:
        """Return the derivatives of the right-hand sides with respect to V_1 and V_2."""
        return sp.Matrix(self.fixed_point).jacobian([V1, V2])

    def top_eigenvalue(self) -> tuple[sp.Expr, sp.Expr] | None:
        r"""Return (a, b) of the largest eigenvalue :math:`a\,p + b + O(1/p)`; None without mean.

        Notes
        -----
        At z ~ p all V vanish like 1/z, so the condition of an outlier is expanded in V_2: it
        determines 1/p as a series :math:`p_1 x + p_2 x^2 + \dots` in :math:`x = -V_2`, and
        :math:`z = 1/x + R(0) + \dots` with R what the equation of V_2 adds to −z.
        """
        if self.outlier_matrix.shape == (1, 1):
            return None
        # V_1 = k V_2 to leading order.
        k = _at_zero(self.fixed_point[0].diff(V2))
        matrix = self.outlier_matrix.xreplace({symbols.inverse_width: sp.S.Zero})
        without_width = matrix[0, 1] * matrix[1, 0] / matrix[1, 1] - matrix[0, 0]
        slope = self.outlier_matrix[0, 0].diff(symbols.inverse_width) * V2
        first = -_at_zero(without_width) / slope
        second = _at_zero(without_width.diff(V2) + k * without_width.diff(V1)) / slope
        added = _at_zero((1 / self.fixed_point[1]).xreplace({z: sp.S.Zero}))
        shift = sp.expand(second / first + added)
        return sp.expand(first), shift

    def lowest(self) -> sp.Expr:
        """Return the z at which V_2 is infinite without an atom at zero: what μ_2² adds to all.

        Zero for the covariance of samples, whose averages vanish with 1/V.
        """
        if self.denominator != 1:
            return sp.S.Zero
        return sp.limit((1 / self.fixed_point[1]).xreplace({z: sp.S.Zero}), V2, sp.oo)

    def first_moment(self) -> sp.Expr:
        """Return the mean of the spectrum without outliers."""
        return sp.expand(_at_zero((1 / self.fixed_point[1]).xreplace({z: sp.S.Zero})))

    def _repr_latex_(self) -> str:
        rows = [
            rf"{sp.latex(x)} &= {sp.latex(value)}"
            for x, value in zip((V1, V2), self.fixed_point, strict=True)
        ]
        rows.append(rf"0 &= {sp.latex(self.second_outlier)}\quad\text{{(outliers)}}")
        return r"$\displaystyle \begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}$"


def spectrum_equations(
    student: Activation,
    *,
    unspiked: bool = False,
    correlated_norms: bool = False,
    population: bool = False,
) -> SpectrumEquations:
    r"""Derive the equations of the spectrum from the free energy.

    Parameters
    ----------
    student : Activation
    unspiked, correlated_norms : bool
        As for :func:`.physics.spiked_free_energy`; correlated norms concern the outliers only.
    population : bool
        Of the population covariance :math:`\mathbb{E}\,\varphi\varphi^\top`, which
        :math:`(\beta/\alpha) K` becomes for α → ∞: the fluctuations V(κ) vanish.
    """
    # The labels drop out, so that any teacher will do.
    energy = _determined(
        spiked_free_energy(
            student,
            student,
            unspiked=unspiked,
            correlated_norms=correlated_norms,
            finite_width=True,
        ).free_energy
    )
    equations = {e.unknown: e for e in saddle_point_equations(energy)}
    resolvent = _closed(equations[V2].value)
    (found,) = resolvent.atoms(Resolvent)
    a, b, _ = found.args

    def at_z(expr: sp.Expr) -> sp.Expr:
        expr = _closed(expr).xreplace({found: V2})
        for hat in (symbols.theta_hat, symbols.V1_hat, symbols.V2_hat):
            if hat in equations:
                expr = expr.xreplace({hat: equations[hat].value})
        expr = expr.xreplace({symbols.ridge: -z})
        return _population(expr) if population else expr

    # G (a + b h) = 1 holds in all of the complex plane; its solution for G has two branches.
    fixed_point = (at_z(equations[V1].value), at_z(1 / (a + b * companion(found))))
    linear = [x for x in (symbols.m, symbols.theta) if x in equations]
    rows = [[at_z(equations[x].residual).diff(y) for y in linear] for x in linear]
    return SpectrumEquations(
        fixed_point=fixed_point,
        outlier_matrix=sp.Matrix(rows).applyfunc(_termwise),
        definitions={f: v for f, v in energy.definitions.items() if f in _TABLES},
        even=student.parity in (Parity.ODD, Parity.EVEN),
    )


def derive_spectrum(
    student: Activation, *, unspiked: bool, correlated_norms: bool
) -> SpectrumDerivation:
    """Derive everything that numbers need, as text; see :class:`SpectrumDerivation`."""
    flags = {"unspiked": unspiked, "correlated_norms": correlated_norms}
    sample = spectrum_equations(student, **flags)
    population = spectrum_equations(student, **flags, population=True)
    tables = tuple(sample.definitions)
    texts = [
        _functions(sample, "", tables),
        _functions(population, "population_", tables),
    ]
    return SpectrumDerivation(
        student=student.name,
        source="import numpy as np\n\n\n" + "\n\n".join(texts),
        table_source=table_source(
            sample.definitions,
            node=symbols.kappa,
            identifiers=IDENTIFIERS,
            parameters=TABLE_PARAMETERS,
        ),
        parameters=tuple(IDENTIFIERS[p] for p in PARAMETERS),
        table_parameters=tuple(IDENTIFIERS[p] for p in TABLE_PARAMETERS),
        even=sample.even,
    )


def _functions(equations: SpectrumEquations, prefix: str, tables: tuple[sp.Expr, ...]) -> str:
    expected = {"mean": equations.first_moment(), "lowest": equations.lowest()}
    top = equations.top_eigenvalue()
    # Counted from the lowest point, or differences near it would have no digits.
    equations = replace(equations, fixed_point=_counted_from_lowest(equations))
    jacobian = equations.jacobian()
    maps = {f"G{i + 1}": equations.fixed_point[i] for i in range(2)}
    maps |= {f"dG{i + 1}_dV{j + 1}": jacobian[i, j] for i in range(2) for j in range(2)}
    maps |= {f"dG{i + 1}_dz": equations.fixed_point[i].diff(z) for i in range(2)}
    if top is not None:
        expected |= {"top_slope": top[0], "top_shift": top[1]}
    wanted = {
        "fixed_point": (maps, "Evaluate the equations of the resolvent and their derivatives."),
        "outliers": (
            {"determinant": equations.outlier_condition}, "Evaluate the condition of outliers.",
        ),
        "expected": (
            expected, "Evaluate mean and lowest point of the bulk, and the top eigenvalue."
        ),
    }  # fmt: skip
    signature: dict[str, Any] = {
        "unknowns": (z, V1, V2),
        "parameters": PARAMETERS,
        "tables": tables,
        "node": symbols.kappa,
        "identifiers": IDENTIFIERS,
    }
    texts = [
        map_source(outputs, function=prefix + name, description=description, **signature)
        for name, (outputs, description) in wanted.items()
    ]
    texts.append(
        node_source(
            equations.denominator,
            function=prefix + "denominator",
            description="Evaluate what the integrands are divided by, at the nodes.",
            **signature,
        )
    )
    return "\n\n".join(texts)


def _counted_from_lowest(equations: SpectrumEquations) -> tuple[sp.Expr, sp.Expr]:
    shifted = {z: z + equations.lowest()}
    first, second = (e.xreplace(shifted) for e in equations.fixed_point)
    return first, second


def _determined(energy: FreeEnergy) -> FreeEnergy:
    """Leave out variables on which the free energy of a special case does not depend."""
    stays = set(stationarity(energy))
    return replace(
        energy,
        order_parameters=tuple(x for x in energy.order_parameters if x in stays),
        conjugates=tuple(x for x in energy.conjugates if x in stays),
    )


def _closed(expr: sp.Expr) -> sp.Expr:
    return expr.xreplace({a: a.doit() for a in expr.atoms(MarchenkoPasturAverage)})


def _averages(expr: sp.Expr) -> set[sp.Expr]:
    found: set[sp.Expr] = expr.atoms(GaussianExpectation)
    return found


def _termwise(expr: sp.Expr) -> sp.Expr:
    """Write averages of sums as sums of averages, so that constant factors come out."""
    separate = {
        a: sp.Add(
            *(
                GaussianExpectation(term, a.variable)
                for term in sp.Add.make_args(sp.expand(a.integrand, deep=False))
            )
        )
        for a in _averages(expr)
    }
    return sp.expand(expr.xreplace(separate))


def _population(expr: sp.Expr) -> sp.Expr:
    quiet = {
        a: GaussianExpectation(a.integrand.xreplace({V1: sp.S.Zero, V2: sp.S.Zero}), a.variable)
        for a in _averages(expr)
    }
    return expr.xreplace(quiet).xreplace({symbols.alpha: symbols.beta})


def _at_zero(expr: sp.Expr) -> sp.Expr:
    """Return the limit of large z, where V_1 and V_2 vanish."""
    return expr.xreplace({V1: sp.S.Zero, V2: sp.S.Zero})
