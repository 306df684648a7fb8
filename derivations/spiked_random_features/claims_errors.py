"""Claims: the errors after one giant step, and how their equations are solved.

Formulas of the paper are written down here a second time, by hand and in the paper's form, and
compared with what the toolkit derives. Values are floats with error estimates, digits that two
rules agree on, proven intervals, and means over networks of finite size; see
:mod:`.claims_mapping` for the biases that are stated of these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import sympy as sp

from ...ball_library import require_flint
from ...symbolic.expressions.activations import activation
from ...symbolic.gaussian.expectation import GaussianExpectation, expect
from ...symbolic.systems.equations import stationarity
from ...symbolic.systems.random_matrix import MarchenkoPasturAverage, Resolvent, resolvent_moment
from ..certificates.agreement import agreement, proof_of
from ..claims import Finding, Status, declare_claim, evidence
from ..comparison import Comparison, compare, finding
from ..identities import cancels, identities_hold, vanishes
from . import physics as fe
from .claims_mapping import (
    DIGITS,
    DIGITS_TOLERANCE,
    NETWORKS,
    SPIKE_DIGITS,
    NetworkCase,
    network_case,
)
from .derive import SymbolicModel, precise_mapping, symbolic_model
from .model import SpikedRandomFeatures
from .published import (
    CONDITIONALS,
    RESIDUAL_LOSS,
    SPIKE,
    TEST_ERROR,
    TRAINING_ERROR,
    VARIANCE,
    ReferenceCase,
    energy_forms,
    reference_cases,
    right_hand_sides,
    written_out,
)

_PAPER = "Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980"

_TRAINING, _ENERGY = sp.symbols("E_train f", real=True)
_FORMULAS = dict(zip(("V", "C", "error"), CONDITIONALS, strict=True)) | {
    "test": TEST_ERROR,
    "training": sp.Eq(_TRAINING, TRAINING_ERROR),
    "loss": _TRAINING + fe.ridge * fe.beta / fe.alpha * fe.q2,
    "residual": RESIDUAL_LOSS,
    "energy": 2 * fe.beta / fe.alpha * _ENERGY,
}

declare_claim(
    "cui-3.3",
    title="Test and training error after one giant step",
    statement=(
        r"The ridge readout of spiked random features has, for $d \to \infty$, the test error "
        r"$«test»$ and the training error $«training»$ with $«V»$, $«C»$ and $«error»$, at the "
        r"stationary point of the free energy in its 13 variables. There "
        r"$$«loss» = «residual» = «energy» .$$"
    ),
    formulas=_FORMULAS,
    source=f"{_PAPER}, Result 3.3; the free energy and its value are derived here",
    status=Status.REPLICA,
)


@evidence("cui-3.3", "exact", "stationarity of the free energy gives the 13 equations")
def published_equations() -> Finding:
    """Stationarity of the free energy gives the 13 equations of Result 3.3."""
    published = right_hand_sides()
    model = symbolic_model("sin", "sin")
    results = {}
    for equation in model.equations:
        x = equation.unknown
        if equation.value is not None:
            results[f"equation of {x}"] = vanishes(equation.value - published[x])
        else:
            results[f"equation of {x}"] = vanishes(
                equation.residual + fe.alpha / fe.beta * published[x]
            )
    if set(published) != {e.unknown for e in model.equations}:
        results["the unknowns are the published ones"] = False
    energy = model.free_energy
    results["test error = E err - Δ"] = vanishes(energy.test_error - written_out(TEST_ERROR))
    results["training error = E err/(1 + V)²"] = vanishes(
        energy.training_error - written_out(TRAINING_ERROR)
    )
    return identities_hold(
        results, "the derivatives of the free energy are the published equations"
    )


@evidence("cui-3.3", "exact", "free energy, regularised loss and residual form agree")
def energy_identity() -> Finding:
    """2β/α times the free energy, modulo the equations, is the regularised training loss."""
    free_energy = spiked_energy().free_energy
    loss, residual = energy_forms(free_energy.expression, stationarity(free_energy))
    half = _ENERGY / _FORMULAS["energy"]
    stated = _FORMULAS["loss"].subs(_TRAINING, spiked_energy().training_error)
    results = {
        "f + conditions = α/(2β) (train + λβ q2/α)": vanishes(loss - half * stated),
        "f + conditions = α/(2β) E (T2 - T0 C - μ1 ψ T1)/(1 + V)": vanishes(
            residual - half * written_out(RESIDUAL_LOSS)
        ),
    }
    return identities_hold(
        results, "loss on the training set, residual form and free energy are one number"
    )


@cache
def spiked_energy() -> fe.SpikedFreeEnergy:
    """Return the free energy with both errors."""
    # The free energy is the same expression for all pairs; only the definitions differ.
    return fe.spiked_free_energy(activation("sin"), activation("sin"))


class _Evaluation:
    """Numbers of expressions that are linear in averages, by SymPy's own integration."""

    def __init__(self, definitions: Any, values: dict[Any, Any], digits: int) -> None:
        self._values, self._digits = values, digits
        self._tables: dict[Any, Any] = {}
        self._known: dict[Any, sp.Expr] = {}

        closed: dict[Any, Any] = {}
        for function, definition in definitions.items():
            nodes = {}
            for node in definition.atoms(GaussianExpectation):
                terms = sp.Add.make_args(sp.expand(node.integrand))
                nodes[node] = sp.Add(*(expect(t, node.variable) for t in terms)).xreplace(closed)
            closed[function] = definition.xreplace(nodes)
            self._tables[function] = closed[function].xreplace(values)

    def __call__(self, expr: Any) -> sp.Expr:
        for node in expr.atoms(GaussianExpectation, MarchenkoPasturAverage) - set(self._known):
            inside = node.args[0].xreplace(self._tables).xreplace(self._values)
            if isinstance(node, MarchenkoPasturAverage):
                beta = node.beta.xreplace(self._values)
                value = MarchenkoPasturAverage(inside, node.variable, beta)
                self._known[node] = value.evalf(self._digits + 3)
            else:
                # One more and one less: an average that vanishes has no relative precision.
                value = GaussianExpectation(inside + 1, node.variable)
                self._known[node] = value.evalf(self._digits + 3) - 1
        return sp.N(expr.xreplace(self._known).xreplace(self._values), self._digits)


@evidence(
    "cui-3.3",
    "quadrature",
    "the 13 conditions at A3 to 30 digits, by SymPy alone",
    arguments={"name": "A3"},
)
@evidence(
    "cui-3.3",
    "quadrature",
    "the same at A4, with noise and β = 1/2",
    slow=True,
    arguments={"name": "A4"},
)
def conditions(name: str, digits: int = 30) -> Finding:
    """Put a solution into the 13 conditions and into the energy identity.

    Nothing of the generated kernels is used: SymPy integrates over κ, and over the density of the
    Marchenko–Pastur law instead of using its resolvent.
    """
    case = network_case(name)
    solution = case.solve(digits + 3)
    model = case.build().symbolic()
    values = _symbol_values(case, solution, digits + 15)
    evaluate = _Evaluation(model.free_energy.free_energy.definitions, values, digits)
    free_energy = model.free_energy.free_energy
    residuals: dict[str, float] = {}
    for x, condition in stationarity(free_energy).items():
        terms = [evaluate(t) for t in sp.Add.make_args(sp.expand_mul(condition, deep=False))]
        # A condition of one term has nothing to be measured against but one.
        scale = max(map(abs, terms)) if len(terms) > 1 else sp.S.One
        residuals[f"∂f/∂{x}"] = float(abs(sp.Add(*terms)) / scale)
    energy = 2 * values[fe.beta] / values[fe.alpha] * evaluate(free_energy.expression)
    loss = values[fe.ridge] * values[fe.beta] / values[fe.alpha] * values[fe.q2]
    loss += evaluate(model.free_energy.training_error)
    form = evaluate(written_out(RESIDUAL_LOSS))
    residuals["2β/α f = train + λβ q2/α"] = float(abs(energy / loss - 1))
    residuals["residual form = train + λβ q2/α"] = float(abs(form / loss - 1))
    worst = max(residuals.values())
    return Finding(
        worst <= 10.0 ** (2 - digits) and len(residuals) == 15,
        f"{len(residuals)} conditions and identities at {name} hold to {worst:.1e}",
        {"residuals": residuals},
    )


def _symbol_values(case: ReferenceCase, solution: Any, digits: int) -> dict[Any, Any]:
    """Values of all symbols of the free energy."""
    model = case.build().symbolic()
    given = {
        name: sp.Rational(case.model[name]) for name in ("step_size", "alpha0", "noise_variance")
    }
    spike = precise_mapping(model.student, model.teacher, given, digits)
    numbers: dict[str, Any] = {
        "alpha": case.alpha,
        "ridge": case.ridge,
        "beta": case.model["beta"],
        "noise_variance": case.model["noise_variance"],
        **dict(zip((*SPIKE, "orthogonal_alignment", "norm_overlap"), spike, strict=True)),
        **solution.order_parameters,
        **solution.conjugates,
    }
    # Text through an mpmath number's own repr would add nothing: str has all its digits. Symbols
    # without a number belong to corrections that these cases leave out.
    return {
        symbol: sp.Float(str(numbers[name]), digits)
        for symbol, name in fe.IDENTIFIERS.items()
        if name in numbers
    }


# What the float kernel is held to, relative to each value. Overlaps that nearly vanish lose
# digits to cancellation; the errors themselves are good to 1e-13.
FLOAT_TOLERANCE = 1e-10


@evidence("cui-3.3", "quadrature", "206 reference values by the float kernel")
def reference_values() -> Finding:
    """Every quantity of every reference case by the float kernel."""
    details: dict[str, dict[str, float]] = {}
    for case in reference_cases():
        details[case.name] = case.deviations(case.solve())
    return _reference_finding(details, FLOAT_TOLERANCE, "the float kernel")


def _reference_finding(details: dict[str, dict[str, float]], tolerance: float, how: str) -> Finding:
    flat = {(case, name): v for case, found in details.items() for name, v in found.items()}
    (case, name), worst = max(flat.items(), key=lambda item: item[1])
    return Finding(
        all(value <= tolerance for value in flat.values()),
        f"{len(flat)} values of {len(details)} cases by {how}: off by at most {worst:.1e} relative "
        f"({name} of {case})",
        {"deviations": details, "tolerance": tolerance},
    )


@evidence(
    "cui-3.3", "quadrature", "25 digits of A1, A3 and A8", arguments={"names": ("A1", "A3", "A8")}
)
@evidence("cui-3.3", "quadrature", "25 digits of all reference values", slow=True)
def precise_values(names: Sequence[str] | None = None) -> Finding:
    """All printed digits of some reference cases, or of all."""
    details: dict[str, dict[str, float]] = {}
    for name in names or [case.name for case in reference_cases()]:
        case = network_case(name)
        details[name] = case.deviations(case.solve(DIGITS))
    return _reference_finding(details, DIGITS_TOLERANCE, f"{DIGITS} digits")


# The training error of the stored cases is small; errors have at least so many proven digits.
PROVEN = 12


@evidence(
    "cui-3.3",
    "certified",
    "one saddle point in a box, its errors in intervals: A1",
    arguments={"names": ("A1",)},
)
@evidence("cui-3.3", "certified", "the same for all reference models", slow=True)
def errors(names: Sequence[str] | None = None) -> Finding:
    """Test error, training error and order parameters of reference models, or of all."""
    require_flint()
    values: dict[str, Any] = {}
    for case in reference_cases():
        if names is not None and case.name not in names:
            continue
        model = case.build()
        proof = proof_of(
            model.solve(alpha=float(case.alpha), ridge=float(case.ridge), certify=True)
        )
        values |= {
            f"{case.name}: {name}": (proof[name], text)
            for name, text in case.values.items()
            if name in proof.values
        }
    return agreement(values, SPIKE_DIGITS, "errors and order parameters", proven=PROVEN)


@evidence(
    "cui-3.3",
    "simulation",
    "errors of small networks, with p ≠ d and with noise",
    arguments={"sizes": ((150, 20),)},
)
@evidence("cui-3.3", "simulation", "errors of networks of two sizes", slow=True)
def networks(
    sizes: Sequence[tuple[int, int]] = ((300, 30), (600, 12)),
    seed: int = 7,
    cases: Sequence[NetworkCase] = NETWORKS,
) -> Finding:
    """Errors of trained networks against the theory.

    Parameters
    ----------
    sizes : sequence of (int, int)
        Dimension and number of networks.
    """
    comparisons: list[Comparison] = []
    for case in cases:
        model = case.build()
        theory = model.solve(alpha=case.alpha, ridge=case.ridge)
        biases = {"test_error": case.test_bias, "training_error": case.training_bias}
        for dimension, count in sizes:
            found = model.simulate(
                dimension,
                alpha=[case.alpha],
                ridge=case.ridge,
                seeds=count,
                seed=seed,
                progress=False,
            )
            for quantity, constant in biases.items():
                limit = getattr(theory, quantity)
                comparisons.append(
                    compare(
                        f"{quantity} of {case.name}", limit, found[quantity].to_numpy()[:, 0],
                        constant * limit / dimension, dimension,
                    )
                )  # fmt: skip
    return finding(comparisons, "errors of networks")


@dataclass(frozen=True)
class FeatureCase:
    """Spiked random features that are compared with the theory at two sizes.

    Attributes
    ----------
    model : mapping
        Arguments of ``from_parameters``.
    biases : mapping
        Stated bias of each quantity, absolute, times the dimension.
    """

    model: Mapping[str, Any]
    alpha: float
    ridge: float
    biases: Mapping[str, float]

    @property
    def name(self) -> str:
        """Student and teacher."""
        return f"{self.model['student']}/{self.model['teacher']}"


FEATURES = (
    FeatureCase(
        {"student": "relu", "teacher": "relu", "spike_strength": 1.0, "bulk_variance": 1.1,
         "alignment": 0.85},
        2.0, 0.1,
        {"test_error": 0.5, "training_error": 0.1, "m": 0.8, "theta": 0.5, "psi": 0.5,
         "q1": 0.5, "q2": 1.4},
    ),
    FeatureCase(
        {"student": "sign", "teacher": "sign", "spike_strength": 1.5, "bulk_variance": 1.2,
         "alignment": 0.9},
        2.0, 0.2,
        {"test_error": 1.4, "training_error": 0.3, "m": 2.4, "theta": 1.2, "psi": 0.6,
         "q1": 1.8, "q2": 3.0},
    ),
    FeatureCase(
        {"student": "erf", "teacher": "sin", "spike_strength": 1.2, "bulk_variance": 1.15,
         "alignment": 0.8, "beta": 2.0, "noise_variance": 0.1},
        1.5, 0.05,
        {"test_error": 0.3, "training_error": 0.1, "m": 0.8, "theta": 0.9, "psi": 0.5,
         "q1": 0.6, "q2": 0.3},
    ),
)  # fmt: skip


@evidence(
    "cui-3.3", "simulation", "errors and overlaps of spiked random features of two sizes", slow=True
)
def spiked_features(
    sizes: Sequence[tuple[int, int]] = ((150, 60), (300, 24)), seed: int = 5
) -> Finding:
    """Errors and overlaps of ridge regression on spiked random features against Result 3.3.

    These features are the model itself, so that nothing but the finite size is between the
    simulation and the theory; students need not be odd or continuous.
    """
    comparisons: list[Comparison] = []
    for case in FEATURES:
        comparisons += spiked_feature_comparisons(case, sizes, seed)
    return finding(comparisons, "errors and overlaps")


MEASURED = ("test_error", "training_error", "m", "theta", "psi", "q1", "q2")


def spiked_feature_comparisons(
    case: FeatureCase, sizes: Sequence[tuple[int, int]], seed: int, width: int | None = None
) -> list[Comparison]:
    """Compare simulated features with the theory; `width` for its finite-width correction."""
    comparisons: list[Comparison] = []
    model = SpikedRandomFeatures.from_parameters(**case.model)
    theory = model.solve(alpha=case.alpha, ridge=case.ridge, width=width)
    for dimension, draws in sizes:
        found = model.simulate(
            dimension, alpha=case.alpha, ridge=case.ridge, seeds=draws, seed=seed, progress=False
        )
        for quantity in MEASURED:
            comparisons.append(
                compare(
                    f"{quantity} of {case.name}", getattr(theory, quantity),
                    found[quantity].to_numpy()[:, 0],
                    case.biases.get(quantity, 0.0) / dimension, dimension,
                )
            )  # fmt: skip
    return comparisons


_SQUARES = tuple(sp.Function(f"mu_{k}^2", nonnegative=True)(fe.kappa) for k in "ij")
_DECAY = fe.alpha / fe.beta * fe.average(sp.Mul(*_SQUARES) / (1 + VARIANCE) ** 2)

declare_claim(
    "block-structure",
    title="The saddle point is two unknowns and two linear systems",
    statement=(
        r"The equations solve in three blocks: $(V_1, V_2)$ by Newton's method, then $(m, "
        r"\vartheta)$ and $(q_1, q_2)$, both linear; all others follow explicitly. With "
        r"$V \mapsto G(V)$ the first block, $\partial G/\partial V = R\,J$, where "
        r"$R_{ij} = \mathbb{E}[D^{[i=1]+[j=1]}/S^2]$ and "
        r"$J_{ij} = «J»$. If student and teacher are odd, every sum over $\kappa$ is even."
    ),
    formulas={"J": _DECAY},
    source="derived here",
    status=Status.DERIVED_HERE,
)


@evidence("block-structure", "exact", "blocks, their cores and their linearity; parity of the sums")
def structure() -> Finding:
    """Three blocks, the last two linear; with odd activations all sums are even."""
    results: dict[str, bool] = {}
    described: dict[str, str] = {}
    for student, teacher, even in (
        ("erf", "erf", True), ("tanh", "sin", True), ("relu", "relu", False)
    ):  # fmt: skip
        model: SymbolicModel = symbolic_model(student, teacher)
        pair = f"{student}/{teacher}"
        blocks = model.structure.blocks
        cores = [
            {str(e.unknown) for component in block.components for e in component.core}
            for block in blocks
        ]
        described[pair] = model.structure.describe()
        results |= {
            f"{pair}: cores are (V1, V2), (m, ϑ), (q1, q2)": cores
            == [
                {str(x) for x in core}
                for core in ((fe.V1, fe.V2), (fe.m, fe.theta), (fe.q1, fe.q2))
            ],
            f"{pair}: only the first block is nonlinear": [block.linear for block in blocks]
            == [False, True, True],
            f"{pair}: sums over κ are {'even' if even else 'not all even'}": model.program.even
            is even,
        }
    found = identities_hold(results, described["tanh/sin"])
    return Finding(found.passed, found.summary, {**found.details, "structure": described})


@evidence("block-structure", "exact", "R and J are the derivatives of the equations")
def jacobian() -> Finding:
    """Derivative of the map V → G(V) is R J with positive closed forms R and sums J."""
    V, V_hat = (fe.V1, fe.V2), (fe.V1_hat, fe.V2_hat)
    published = right_hand_sides()
    squares = (fe.mu1**2, fe.mu2_squared)
    results: dict[str, bool] = {}
    a, b = fe.ridge + fe.V2_hat, fe.V1_hat * fe.c
    powers = {(0, 0): 2, (0, 1): 1, (1, 1): 0}
    for (i, j), power in powers.items():
        closed = -(fe.c**power) * resolvent_moment(power, 2, a, b, fe.beta)
        derivative = published[V[i]].doit().diff(V_hat[j])
        results[f"∂G{i + 1}/∂V̂{j + 1} = -R{i + 1}{j + 1}"] = _zero_with_resolvent(
            derivative - closed, a, b
        )
    for i in range(2):
        for j in range(2):
            pair = dict(zip(_SQUARES, (squares[i], squares[j]), strict=True))
            results[f"∂V̂{i + 1}/∂V{j + 1} = -J{i + 1}{j + 1}"] = vanishes(
                published[V_hat[i]].diff(V[j]) + written_out(_DECAY.xreplace(pair))
            )
    return identities_hold(results, "Newton's Jacobian is R J, all entries positive")


def _zero_with_resolvent(expr: sp.Expr, a: sp.Expr, b: sp.Expr) -> bool:
    """Zero test modulo G (a + b h) = 1, by which a is expressed through G."""
    g = sp.Dummy("G", positive=True)
    h = 1 / (1 + fe.beta * b * g)
    expr = expr.xreplace({Resolvent(a, b, fe.beta): g})
    # λ occurs in the combination a = λ + V̂2 alone.
    return cancels(expr.subs(fe.ridge, 1 / g - b * h - fe.V2_hat))
