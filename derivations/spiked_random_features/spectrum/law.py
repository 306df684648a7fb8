r"""The law of a feature spectrum: its equations at given parameters, solved by root tracking.

The equations are derived once for a student and kept in the cache as text; a run that finds them
there imports no SymPy.

**Spectrum of the feature covariance: what the saddle-point equations say at λ = −z.** The
covariance of the features on a training set is :math:`K = p^{-1}\sum_\mu\varphi_\mu
\varphi_\mu^\top`, of shape p × p. The order parameter V_2 of a ridge readout is the trace of its
resolvent, :math:`V_2 = p^{-1}\operatorname{tr}(K + \lambda)^{-1}`, so the block (V_1, V_2) of the
equations, which knows nothing of the labels, is the Stieltjes transform of its spectrum at λ = −z.
The bulk is where the solution leaves the real axis. An outlier is a real z outside the bulk at
which the next block, the linear system of m and ϑ, becomes singular: the resolvent is infinite
along a combination of the all-ones vector and B v.

Everything here is derived from :mod:`.physics`; nothing is written a second time. Source of
the block: Cui et al., arXiv 2402.04980, Result 3.3 and its appendix on the spectrum; the
conditions of outliers are derived here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from ....numeric.cache import FileCache
from ....numeric.spectra.bulk import (
    NEGLIGIBLE,
    AnalyticTables,
    Bulk,
    Complex,
    Nodes,
    Real,
    ResolventTransform,
    SelfConsistency,
    arranged,
    density,
    find_bulk,
    real_roots,
)
from ....pages import InLatex
from ....runtime import quadrature
from ....runtime.levels import Tables
from ....symbolic.expressions.activations import Activation, activation
from ....symbolic.expressions.regularity import Parity
from ....symbolic.gaussian.expectation import GaussianExpectation
from ....symbolic.lowering.map_source import MapSource
from ....symbolic.lowering.tables import table_source
from ....symbolic.systems.equations import determined, saddle_point_equations
from ....symbolic.systems.random_matrix import MarchenkoPasturAverage, Resolvent, companion
from ...derived import derived
from ...spectra.spectrum import with_derivatives
from .. import physics as symbols
from ..physics import IDENTIFIERS, spiked_free_energy

if TYPE_CHECKING:
    from ..model import SpikedRandomFeatures

# Trapezoidal step at the first level, per unit width of the tables.
_STEP_PER_WIDTH = 0.25
_FINEST = 6
_FINE = 3
# Where the normal density is smaller than this a pole on the line carries no mass.
_MASSLESS = 1e-11
# Steps of the nodes between a contour and the next pole: the error is exp(-2 pi) for each.
_STEPS_TO_POLE = 2.5
# Variance of the noise, relative to that of the features, that is rounding.
_NO_NOISE = 1e-13
# Rounding of 1 - min(…) is no atom.
_NO_ATOM = 1e-14


@derived("spiked_random_features/spectrum", dict)
def spectrum_sources(
    student: str, *, unspiked: bool, correlated_norms: bool
) -> dict[str, str | bool]:
    """Derive everything that numbers need for one student, as text.

    ``"arrays"`` defines ``fixed_point``, ``outliers``, ``expected`` and ``denominator``, and the
    same of the population covariance under names that begin with ``population_``; ``"tables"`` the
    tables of the student. ``"even"``: half of the quadrature line suffices.
    """
    flags = {"unspiked": unspiked, "correlated_norms": correlated_norms}
    sigma = activation(student, argument="student")
    sample = spectrum_equations(sigma, **flags)
    population = spectrum_equations(sigma, **flags, population=True)
    tables = tuple(sample.definitions)
    texts = [_functions(sample, "", tables), _functions(population, "population_", tables)]
    return {
        "arrays": "import numpy as np\n\n\n" + "\n\n".join(texts),
        "tables": table_source(
            sample.definitions,
            node=symbols.kappa,
            identifiers=IDENTIFIERS,
            parameters=TABLE_PARAMETERS,
        ),
        "even": sample.even,
    }


@dataclass(frozen=True)
class SpectrumFunctions:
    """The generated functions with their parameters and tables.

    Attributes
    ----------
    values : mapping from str to float
        Of the parameters of the equations and the tables.
    even : bool
        All integrands are even in κ.
    population : bool
        Of the population covariance.
    """

    module: ModuleType
    table_module: ModuleType
    values: Mapping[str, float]
    even: bool
    population: bool = False

    @classmethod
    def load(
        cls, found: Mapping[str, Any], cache: FileCache, values: Mapping[str, float], **given: Any
    ) -> SpectrumFunctions:
        """Load what :func:`spectrum_sources` generated."""
        module = cache.load_module("spectrum", found["arrays"])
        tables = cache.load_module("spectrum_tables", found["tables"])
        return cls(module, tables, values, found["even"], **given)

    @cached_property
    def width(self) -> float:
        """Scale in κ over which the tables vary, at most 1."""
        with np.errstate(divide="ignore", over="ignore"):
            return float(self.table_module.outer_scale(np.zeros(1), *self._table_values))

    @property
    def _table_values(self) -> list[np.float64]:
        return [
            np.float64(self.values[name]) for name in map(IDENTIFIERS.__getitem__, TABLE_PARAMETERS)
        ]

    def tabulate(self, x: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
        """Return the tables at real nodes."""
        return Tables(self.table_module, self._table_values)(x)

    def _nodes(self, level: int) -> Nodes:
        x, weight, _ = quadrature.outer_rules(_STEP_PER_WIDTH * self.width / 2**level, self.even)[0]
        return Nodes(weight, x, dict(self.tabulate(x)))

    @cached_property
    def fine_nodes(self) -> Nodes:
        """Nodes and tables of a fine rule on the line."""
        return self._nodes(_FINE)

    def call(self, name: str, z: Any, v: Any, nodes: Nodes, **changed: float) -> Any:
        """Call a generated function."""
        function = getattr(self.module, ("population_" if self.population else "") + name)
        values = {**self.values, **changed}
        parameters = {name: values[name] for name in map(IDENTIFIERS.__getitem__, PARAMETERS)}
        given = {"weight": nodes.weight, "kappa": nodes.node, **nodes.tables}
        return function(z, v[0], v[1], **parameters, **given)

    def equations(self, nodes: Nodes) -> SelfConsistency:
        """Return the equations of the resolvent as sums over nodes."""

        return lambda z, v: arranged(self.call("fixed_point", z, v, nodes), len(v))

    @cached_property
    def expected(self) -> tuple[float, ...]:
        """Mean and lowest point of the bulk; of the top eigenvalue a p + b both, if there is one.

        The lowest point is zero except for the population covariance.
        """
        one = np.ones(1)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = self.call("expected", one, np.stack([one, one]), self.fine_nodes)
        values = tuple(float(f[0]) for f in found)
        # A mean that only vanishes at these parameters, such as that of He_2 at c = 1.
        return values if math.isfinite(values[-1]) else values[:2]

    @property
    def origin(self) -> float:
        """From where logarithmic scales are counted: the lowest point that there can be."""
        return self.expected[1]

    @cached_property
    def ranks(self) -> tuple[bool, bool]:
        """Whether the features have a part along B x, and one of independent noise."""
        tables = self.fine_nodes.tables
        weight = quadrature.normal_density(self.fine_nodes.node)
        parts = [
            float(np.sum(weight * np.asarray(tables[k]) ** power)) if k in tables else 0.0
            for k, power in (("mu_1", 2), ("mu_2_squared", 1))
        ]
        return parts[0] > 0, parts[1] > _NO_NOISE * sum(parts)

    @property
    def mass(self) -> float:
        """Mass of what is not at the origin: the rank divided by p."""
        along, noise = self.ranks
        beta = self.values["beta"]
        rank = min(1.0, 1 / beta) if along else 0.0
        if self.population:
            # Noise alone fills the other directions with its variance, the origin.
            return rank
        return min(self.values["alpha"] / beta, 1.0 if noise else rank)

    def outlier_condition(self, x: Any, v: Any, inverse_width: float) -> NDArray[np.float64]:
        """Return the determinant whose real zeros outside the bulk are outliers."""
        (found,) = self.call("outliers", x, v, self.fine_nodes, inverse_width=inverse_width)
        return np.asarray(found)

    @cached_property
    def resolvent(self) -> ResolventTransform:
        """V(z) by root tracking, z counted from the origin."""
        return ResolventTransform(
            levels=self._level,
            scale=(self.expected[0] - self.origin) / self.mass if self.mass else 1.0,
            finest=_FINEST,
            tails=None if self.population else _Tails(self),
        )

    def _level(self, level: int) -> SelfConsistency:
        nodes = self.fine_nodes if level == _FINE else self._nodes(level)
        return self.equations(nodes)


@dataclass(frozen=True)
class FeatureLaw:
    """The spectrum of one of the matrices that are made of the features.

    Attributes
    ----------
    functions : SpectrumFunctions
        Of the p × p matrix that is derived.
    scale : float
        What its eigenvalues are multiplied by.
    zeros, share : float
        Mass that is added at zero, and factor of all other masses.
    """

    functions: SpectrumFunctions
    scale: float = 1.0
    zeros: float = 0.0
    share: float = 1.0

    @classmethod
    def of(cls, model: SpikedRandomFeatures, alpha: float, covariance: str) -> FeatureLaw:
        """Return the law of a model's features; see ``SpikedRandomFeatures.spectrum``."""
        spike, beta = model.spike, model.beta
        model._refuse_other_rows("the spectrum")
        found = spectrum_sources(
            model._cache,
            model.derivation.student,
            unspiked=spike.spike_strength == 0,
            correlated_norms=model._case["correlated_norms"],
        )
        values: Mapping[str, float] = {
            "alpha": alpha,
            "beta": beta,
            "bulk_variance": spike.bulk_variance,
            "spike_strength": spike.spike_strength,
            "norm_overlap": spike.norm_overlap,
            "inverse_width": 0.0,
        }
        functions = SpectrumFunctions.load(
            found, model._cache, values, population=covariance == "population"
        )
        if covariance == "kernel":
            # The n × n matrix has the nonzero eigenvalues of the p × p one.
            return cls(functions, zeros=1 - beta / alpha, share=beta / alpha)
        return cls(functions, scale=beta / alpha if covariance == "empirical" else 1.0)

    @property
    def lowest(self) -> float:
        """The lowest point that there can be."""
        return self.functions.origin * self.scale

    @property
    def mean(self) -> float:
        """Mean of bulk and atoms."""
        return self.functions.expected[0] * self.scale * self.share

    @property
    def top(self) -> tuple[float, float] | None:
        """a and b of the eigenvalue a p + b of the mean direction; None without a mean."""
        found = self.functions.expected[2:]
        return (found[0] * self.scale, found[1] * self.scale) if found and found[0] else None

    @property
    def atoms(self) -> tuple[tuple[float, float], ...]:
        """Place and mass of the degenerate eigenvalue, if there is one."""
        mass = self.share * (1 - self.functions.mass) + self.zeros
        return ((self.lowest, mass),) if mass > _NO_ATOM else ()

    def bulk(self, points: int) -> Bulk:
        """Return the bulk on a grid of so many points in all."""
        functions, share = self.functions, self.share
        found = find_bulk(functions.resolvent, points, functions.mass, 1 - functions.mass)
        below = sum(mass for _, mass in self.atoms) - share * (1 - functions.mass)
        return replace(
            found,
            edges=(found.edges + functions.origin) * self.scale,
            points=(found.points + functions.origin) * self.scale,
            density=found.density * share / self.scale,
            masses=share * found.masses,
            mass_errors=share * found.mass_errors,
            cumulative=below + share * found.cumulative,
        )

    def density(self, x: Real) -> Real:
        """Return the density at ascending points."""
        at = x / self.scale - self.functions.origin
        negligible = NEGLIGIBLE * self.functions.mass
        return density(self.functions.resolvent, at, negligible)[0] * self.share / self.scale

    def transform(self, z: Complex) -> Complex:
        """Return the transform at points with Im z ≥ 0; real ones are off the spectrum."""
        found = self.functions.resolvent.trace_at(z / self.scale - self.functions.origin)
        return self.share * found / self.scale - (self.zeros / z if self.zeros else 0.0)

    def outliers(
        self, edges: Real, soft: NDArray[np.bool_], inverse_width: float
    ) -> tuple[float, ...]:
        """Return the real points off the bulk where the condition of outliers holds.

        Parameters
        ----------
        edges, soft : array (k, 2)
            The bulk.
        inverse_width : float
            1/p, zero for the outliers that stay where they are.
        """
        functions = self.functions
        origin, expected = functions.origin, functions.expected
        ends = edges / self.scale - origin
        if not len(ends):
            ends = np.zeros((1, 2))
        far = 4 * expected[0] + 10 * ends[-1, 1]
        if len(expected) > 2:
            slope, shift = expected[2:]
            far += 10 * (slope / inverse_width if inverse_width else 0.0) + 10 * shift
        gaps = [(ends[k, 1], ends[k + 1, 0]) for k in range(len(ends) - 1)]
        if not soft[:1, 0].any() and ends[0, 0] > 0:
            gaps.insert(0, (0.0, ends[0, 0]))
        if not soft[-1:, 1].any():
            gaps.append((ends[-1, 1], far))
        # Without a mean its row holds 1/p alone, a factor of the determinant.
        scaled_width = inverse_width if len(expected) > 2 else 1.0

        def condition(x: Real) -> Real:
            v, _ = functions.resolvent.solve(x, finest=3)
            return functions.outlier_condition(x + origin, v.real, scaled_width)

        found = [x for low, high in gaps for x in real_roots(condition, low, high)]
        return tuple(float((x + origin) * self.scale) for x in found)


class _Tails:
    """Averages over κ on contours, for densities that nodes on the line do not resolve."""

    def __init__(self, functions: SpectrumFunctions) -> None:
        self._functions = functions

    @cached_property
    def _tables(self) -> AnalyticTables:
        return AnalyticTables(self._functions.tabulate, self._functions.width)

    @cached_property
    def _line(self) -> Nodes:
        nodes = self._functions._nodes(1)
        near = quadrature.normal_density(nodes.node) > _MASSLESS
        tables = {k: np.broadcast_to(t, near.shape)[near] for k, t in nodes.tables.items()}
        return Nodes(nodes.weight[near], nodes.node[near], tables)

    def crossed(self, v: Complex) -> NDArray[np.bool_]:
        """Tell which real V put a zero of the denominator onto the line."""
        columns = v.real[:, :, None]
        values = self._functions.call("denominator", 0.0, columns, self._line)
        return (values.max(axis=1) > 0) & (values.min(axis=1) < 0)

    def around(
        self, v: Complex, shift: float, refinement: int
    ) -> tuple[SelfConsistency, Callable[[Complex], NDArray[np.bool_]]] | None:
        """Return equations on a contour that passes the zeros of the denominator at V."""
        found = self._tables.contour(self._denominator(v), shift, refinement)
        if found is None:
            return None

        def resolved(v: Complex) -> NDArray[np.bool_]:
            values = self._functions.call("denominator", 0.0, v[:, :, None], found)
            with np.errstate(all="ignore"):
                steps = np.abs(values[:, :-1]) / np.abs(np.diff(values, axis=1))
            return np.asarray(np.nan_to_num(steps, posinf=np.inf).min(axis=1) > _STEPS_TO_POLE)

        return self._functions.equations(found), resolved

    def _denominator(self, v: Complex) -> Callable[[Complex, dict[str, Complex]], Complex]:
        def evaluate(node: Complex, tables: dict[str, Complex]) -> Complex:
            nodes = Nodes(np.ones(0, dtype=complex), node, tables)
            return np.asarray(self._functions.call("denominator", 0.0, v, nodes))

        return evaluate


# ------------------------------------------------------------------ equations

z = sp.Symbol("z")
V1, V2 = symbols.V1, symbols.V2
# Parameters of the equations, and those of the tables.
PARAMETERS = (
    symbols.alpha, symbols.beta, symbols.c, symbols.inverse_width, symbols.norm_overlap,
)  # fmt: skip
TABLE_PARAMETERS = (symbols.r, symbols.c)
_TABLES = (symbols.mu0, symbols.mu1, symbols.mu2_squared, symbols.chi)


@dataclass(frozen=True)
class SpectrumEquations(InLatex):
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

    def latex(self) -> str:
        """Return the equations in LaTeX, aligned, without delimiters."""
        rows = [
            rf"{sp.latex(x)} &= {sp.latex(value)}"
            for x, value in zip((V1, V2), self.fixed_point, strict=True)
        ]
        rows.append(rf"0 &= {sp.latex(self.second_outlier)}\quad\text{{(outliers)}}")
        return r"\begin{aligned}" + r" \\ ".join(rows) + r"\end{aligned}"


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
    unspiked, correlated_norms : bool
        As for :func:`.physics.spiked_free_energy`; correlated norms concern the outliers only.
    population : bool
        Of the population covariance :math:`\mathbb{E}\,\varphi\varphi^\top`, which
        :math:`(\beta/\alpha) K` becomes for α → ∞: the fluctuations V(κ) vanish.
    """
    # The labels drop out, so that any teacher will do.
    energy = determined(
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


def _functions(equations: SpectrumEquations, prefix: str, tables: tuple[sp.Expr, ...]) -> str:
    expected = {"mean": equations.first_moment(), "lowest": equations.lowest()}
    top = equations.top_eigenvalue()
    # Counted from the lowest point, or differences near it would have no digits.
    equations = replace(equations, fixed_point=_counted_from_lowest(equations))
    names = ["G1", "G2", "dG1_dV1", "dG1_dV2", "dG2_dV1", "dG2_dV2", "dG1_dz", "dG2_dz"]
    maps = dict(zip(names, with_derivatives(equations.fixed_point, (V1, V2), z), strict=True))
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
    source = MapSource((z, V1, V2), PARAMETERS, tables, symbols.kappa, IDENTIFIERS)
    texts = [
        source.map(outputs, function=prefix + name, description=description)
        for name, (outputs, description) in wanted.items()
    ]
    about = "Evaluate what the integrands are divided by, at the nodes."
    denominator = equations.denominator
    texts.append(source.at_nodes(denominator, function=prefix + "denominator", description=about))
    return "\n\n".join(texts)


def _counted_from_lowest(equations: SpectrumEquations) -> tuple[sp.Expr, sp.Expr]:
    shifted = {z: z + equations.lowest()}
    first, second = (e.xreplace(shifted) for e in equations.fixed_point)
    return first, second


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
