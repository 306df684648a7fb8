"""Evidence by quadrature: floats with error estimates, and digits that two rules agree on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..claims import Finding
from .model import SpikedRandomFeatures
from .reference import SPIKE, ReferenceCase, reference_cases

if TYPE_CHECKING:
    import sympy as sp

# What the float kernel is held to, relative to each value. Overlaps that nearly vanish lose
# digits to cancellation; the errors themselves are good to 1e-13.
FLOAT_TOLERANCE = 1e-10
# Half a unit of the 25th digit is at most 5e-25; trailing zeros are not printed.
DIGITS, DIGITS_TOLERANCE = 27, 5.1e-25

# (student, teacher, r, c, γ, β), then U, L and E_∞ with 15 digits (9 where θ has kinks), and the
# test error at the best ridge penalty for α = 20, 10³, 10⁶. Trapezoidal rule in double precision,
# independent of giantstep; L of tanh on sin, whose last two digits double precision did not reach
# (...075), in 40-digit arithmetic.
_BOUNDS: tuple[tuple[tuple[Any, ...], tuple[float, float, float], tuple[float, ...]], ...] = (
    (("tanh", "sin", 1.0, 1.0, 1.0, 1.0),
     (0.0248911069467352, 0.00268730756804067, 0.0230610227008131),
     (0.0235020, 0.0230702, 0.0230610)),
    (("erf", "He(3, z)/6", 1.5, 1.0, 1.0, 1.0),
     (0.157342673408518, 0.0895263268470716, 0.150683695047525),
     (0.1518268, 0.1507074, 0.1506837)),
    (("sin", "tanh", 0.7, 1.2, 0.8, 2.0),
     (0.153806248299808, 0.0113938597307098, 0.0546081060492398),
     (0.0595074, 0.0547173, 0.0546082)),
    (("relu", "sin", 1.0, 1.0, 1.0, 0.5),
     (0.281313975, 0.203693484, 0.273232972),
     (0.2757766, 0.2732963, 0.2732330)),
)  # fmt: skip
_SAMPLE_COMPLEXITIES = (20.0, 1e3, 1e6)


def _case(name: str) -> ReferenceCase:
    return next(case for case in reference_cases() if case.name == name)


# ------------------------------------------------------------------ the gradient step


def mapping_values() -> Finding:
    """Floats of r, c, γ at A1, A2, A4 against 25 digits, and 25 digits by the exact formulas."""
    import sympy as sp

    from .derive import precise_mapping

    deviations: dict[str, float] = {}
    precise: dict[str, float] = {}
    for case in map(_case, ("A1", "A2, alpha=3", "A4")):
        model = case.build()
        given = {
            name: sp.Rational(case.model[name])
            for name in ("step_size", "alpha0", "noise_variance")
        }
        symbolic = model.symbolic()
        digits = precise_mapping(symbolic.student, symbolic.teacher, given, 30)
        for name, value in zip(SPIKE, digits, strict=False):
            exact = sp.Float(case.spike[name], 40)
            found = sp.Float(getattr(model.spike, name), 40)
            deviations[f"{case.name}: {name}"] = float(abs(found - exact) / abs(exact))
            precise[f"{case.name}: {name}"] = float(abs(value - exact) / abs(exact))
    worst, worst_precise = max(deviations.values()), max(precise.values())
    return Finding(
        worst <= 1e-15 and worst_precise <= DIGITS_TOLERANCE,
        f"{len(deviations)} values of r, c, γ: floats off by at most {worst:.1e} relative, "
        f"high precision by {worst_precise:.1e}",
        {"float": deviations, "digits": precise},
    )


# ------------------------------------------------------------------ the saddle point


def reference_values() -> Finding:
    """Every quantity of every reference case by the float kernel."""
    details: dict[str, dict[str, float]] = {}
    for case in reference_cases():
        details[case.name] = case.deviations(case.solve())
    return _reference_finding(details, FLOAT_TOLERANCE, "the float kernel")


def quick_digits() -> Finding:
    """All printed digits of the cases that take seconds."""
    return precise_values(("A1", "A3", "A8"))


def all_digits() -> Finding:
    """All printed digits of all cases."""
    return precise_values([case.name for case in reference_cases()])


def precise_values(names: Sequence[str]) -> Finding:
    """All printed digits of some reference cases."""
    details: dict[str, dict[str, float]] = {}
    for name in names:
        case = _case(name)
        details[name] = case.deviations(case.solve(DIGITS))
    return _reference_finding(details, DIGITS_TOLERANCE, f"{DIGITS} digits")


def _reference_finding(details: dict[str, dict[str, float]], tolerance: float, how: str) -> Finding:
    flat = {(case, name): v for case, found in details.items() for name, v in found.items()}
    (case, name), worst = max(flat.items(), key=lambda item: item[1])
    return Finding(
        all(value <= tolerance for value in flat.values()),
        f"{len(flat)} values of {len(details)} cases by {how}: off by at most {worst:.1e} relative "
        f"({name} of {case})",
        {"deviations": details, "tolerance": tolerance},
    )


def quick_conditions() -> Finding:
    """The 13 conditions at A3, evaluated by SymPy alone."""
    return conditions("A3")


def other_conditions() -> Finding:
    """The 13 conditions at A4, with noise and at another aspect ratio."""
    return conditions("A4")


def conditions(name: str, digits: int = 30) -> Finding:
    """Put a solution into the 13 conditions and into the energy identity.

    Nothing of the generated kernels is used: SymPy integrates over κ, and over the density of the
    Marchenko–Pastur law instead of using its resolvent.
    """
    import sympy as sp

    from ...symbolic.equations import stationarity
    from . import free_energy as fe

    case = _case(name)
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
    variance = fe.mu1**2 * fe.V1 + fe.mu2_squared * fe.V2
    mean = fe.mu0 * fe.m + fe.mu1 * fe.kappa * fe.theta
    form = evaluate(fe.average((fe.T2 - fe.T0 * mean - fe.mu1 * fe.psi * fe.T1) / (1 + variance)))
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
    import sympy as sp

    from . import free_energy as fe
    from .derive import precise_mapping

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


class _Evaluation:
    """Numbers of expressions that are linear in averages, by SymPy's own integration."""

    def __init__(self, definitions: Any, values: dict[Any, Any], digits: int) -> None:
        import sympy as sp

        from ...symbolic.gaussian import GaussianExpectation, expect

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
        import sympy as sp

        from ...symbolic.gaussian import GaussianExpectation
        from ...symbolic.random_matrix import MarchenkoPasturAverage

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


# ------------------------------------------------------------------ without a step


def unspiked_values() -> Finding:
    """A8 by floats, the bound of the best linear predictor, and no dependence on γ."""
    case = _case("A8")
    model = case.build()
    deviations = case.deviations(case.solve())
    worst = max(deviations[name] for name in ("test_error", "training_error"))
    errors = [
        SpikedRandomFeatures.from_parameters(
            "erf", "erf", spike_strength=0, bulk_variance=1, alignment=gamma, beta=1.5
        )
        .solve(alpha=2, ridge=0.01)
        .test_error
        for gamma in (-1.0, -0.3, 0.0, 0.6, 1.0)
    ]
    spread = (max(errors) - min(errors)) / errors[2]
    alphas = np.repeat([0.2, 1.0, 5.0, 1e3], 5)
    ridges = np.tile(np.logspace(-4, 2, 5), 4)
    batch = model.solve_many(alphas, ridges)
    margin = float(np.min(batch.values["test_error"])) / model.best_linear_error
    near = (
        SpikedRandomFeatures("erf", "erf", step_size=0, beta=1000.0)
        .solve(alpha=1e3, ridge=1.0)
        .test_error
    )
    return Finding(
        worst <= 1e-12 and spread <= 1e-13 and margin >= 1 and abs(near - 0.0402843) <= 5e-8,
        f"A8 off by {worst:.1e}; spread over γ {spread:.1e}; least test error "
        f"{margin:.4f} times the linear bound; {near:.7f} at α = β = 10³, bound "
        f"{model.best_linear_error:.7f}",
        {"deviations": deviations, "errors_over_alignment": errors, "margin": margin},
    )


def order_of_limits() -> Finding:
    r"""Test and training error as r → 0 after d → ∞, against plain random features.

    For γ = 0 they go to those of plain random features. For γ ≠ 0 they do not: μ_0 ≈ r h_1 κ
    stays a feature that costs nothing, m grows like 1/r, and the part h*_1 γ κ of the target is
    learnt. What is left are plain random features of the target whose linear part is reduced
    from h*_1 to ρ h*_1.
    """
    k = 2 / math.sqrt(3 * math.pi)  # h*_1 of erf
    plain = (
        SpikedRandomFeatures("erf", "erf", step_size=0, beta=1.5)
        .solve(alpha=2, ridge=0.01)
        .test_error
    )
    ratios: dict[str, float] = {}
    errors: dict[str, list[float]] = {}
    gaps: dict[str, float] = {}
    for name, build in {
        "γ = 0": _spiked(0.0), "γ = 0.5": _spiked(0.5), "a step with α0 = 4": _stepped(4.0)
    }.items():  # fmt: skip
        gamma = build(0.01).spike.alignment
        taken = k * (1 - math.sqrt(1 - gamma**2))
        teacher = f"erf(z) - {taken!r}*z" if gamma else "erf"
        limit = SpikedRandomFeatures("erf", teacher, step_size=0, beta=1.5).solve(
            alpha=2, ridge=0.01
        )
        distances = [
            build(r).solve(alpha=2, ridge=0.01).test_error - limit.test_error for r in (0.02, 0.01)
        ]
        errors[name] = [limit.test_error, *distances]
        # Even in r: halving it divides the distance by four.
        ratios[name] = distances[0] / distances[1]
        gaps[name] = 1 - limit.test_error / plain
    converges = all(abs(ratio - 4) < 0.05 for ratio in ratios.values())
    return Finding(
        converges and gaps["γ = 0"] == 0 and all(gap > 0.1 for gap in list(gaps.values())[1:]),
        "distance to the limit falls by "
        + ", ".join(f"{ratio:.3f} ({name})" for name, ratio in ratios.items())
        + " when the step is halved; the limits are below the error without a step by "
        + ", ".join(f"{gap:.1%}" for gap in gaps.values()),
        {"ratios": ratios, "limit_and_distances": errors, "gaps": gaps},
    )


def _spiked(gamma: float) -> Callable[[float], SpikedRandomFeatures]:
    return lambda r: SpikedRandomFeatures.from_parameters(
        "erf", "erf", spike_strength=r, bulk_variance=1, alignment=gamma, beta=1.5
    )


def _stepped(alpha0: float) -> Callable[[float], SpikedRandomFeatures]:
    return lambda s: SpikedRandomFeatures("erf", "erf", step_size=s, alpha0=alpha0, beta=1.5)


# ------------------------------------------------------------------ invariances and bounds


def invariances() -> Finding:
    """Both symmetries by the float kernel, for a student of the user's as well."""
    build = SpikedRandomFeatures.from_parameters
    deviations: dict[str, float] = {}
    for student, teacher in (("tanh", "sin"), ("erf", "erf"), ("relu", "tanh")):
        pair = [
            build(
                student, teacher, spike_strength=sign * 1.1, bulk_variance=1.1,
                alignment=sign * 0.7, beta=0.8, noise_variance=0.1,
            ).solve(alpha=1.5, ridge=0.05)
            for sign in (1, -1)
        ]  # fmt: skip
        deviations[f"{student}/{teacher}: (r, γ) → (-r, -γ)"] = _apart(*pair)
    for student, scaled in (("tanh", "2*tanh(z)"), ("erf", "erf(z)/3")):
        factor = 4.0 if student == "tanh" else 1 / 9
        one = SpikedRandomFeatures(student, "sin", step_size=0.0).solve(alpha=1.5, ridge=0.05)
        other = SpikedRandomFeatures(scaled, "sin", step_size=0.0).solve(
            alpha=1.5, ridge=0.05 * factor
        )
        deviations[f"{scaled}, without a step"] = _apart(one, other)
        arguments: dict[str, Any] = {
            "spike_strength": 1.1, "bulk_variance": 1.1, "alignment": 0.7, "beta": 0.8
        }  # fmt: skip
        one = build(student, "sin", **arguments).solve(alpha=1.5, ridge=0.05)
        other = build(scaled, "sin", **arguments).solve(alpha=1.5, ridge=0.05 * factor)
        deviations[f"{scaled}, with a spike"] = _apart(one, other)
    worst = max(deviations.values())
    return Finding(
        worst <= 1e-12,
        f"{len(deviations)} pairs of models agree to {worst:.1e} relative",
        {"deviations": deviations},
    )


def _apart(one: Any, other: Any) -> float:
    return max(
        abs(getattr(one, name) / getattr(other, name) - 1)
        for name in ("test_error", "training_error")
    )


def bounds() -> Finding:
    """U, L and the limit α → ∞ of four configurations, and L ≤ test for every penalty."""
    deviations: dict[str, dict[str, float]] = {}
    margins: dict[str, float] = {}
    passed = True
    for configuration, printed, best in _BOUNDS:
        student, teacher, r, c, gamma, beta = configuration
        model = SpikedRandomFeatures.from_parameters(
            student, teacher, spike_strength=r, bulk_variance=c, alignment=gamma, beta=beta
        )
        name = f"{student}/{teacher}"
        found = _bounds_of(model)
        deviations[name] = {
            quantity: abs(value / reference - 1)
            for quantity, value, reference in zip(("U", "L", "limit"), found, printed, strict=True)
        }
        tolerance = 1e-8 if student == "relu" else 1e-13
        passed &= max(deviations[name].values()) <= tolerance
        alphas = np.repeat([0.3, 1.0, 3.0, 30.0], 13)
        ridges = np.tile(np.logspace(-3, 6, 13), 4)
        errors = model.solve_many(alphas, ridges).values["test_error"]
        margins[name] = float(errors.min()) / found[1]
        passed &= margins[name] >= 1
        for alpha, reference in zip(_SAMPLE_COMPLEXITIES, best, strict=True):
            least = _least_test_error(model, alpha)
            deviations[name][f"best penalty at alpha = {alpha:g}"] = least - reference
            # Seven decimals are printed; the values come from a grid of penalties, so that one of
            # them (erf/He3 at 10³) lies 2.2e-7 above the least error.
            passed &= -3e-7 <= least - reference <= 5.1e-8 and found[1] <= least <= found[0]
    worst = max(max(d["U"], d["L"], d["limit"]) for d in deviations.values())
    return Finding(
        bool(passed),
        f"U, L and the limit of {len(_BOUNDS)} configurations to {worst:.1e} relative; least test "
        f"error over penalties at least {min(margins.values()):.3f} L; best penalties reach the "
        "limit",
        {"deviations": deviations, "least_test_error_over_L": margins},
    )


def _bounds_of(model: SpikedRandomFeatures) -> tuple[float, float, float]:
    """U, L and E_∞ from the tables of the coefficients."""
    import sympy as sp

    from ...numeric.kernel_arrays import converged_tables
    from ...runtime.quadrature import trapezoidal_rule
    from ...symbolic.random_matrix import Resolvent

    kernel = model._kernel
    known = model._parameter_values()
    x, w = trapezoidal_rule(1 / 16)
    assert kernel.tables is not None
    tables = converged_tables(kernel.tables, [known[p] for p in kernel.table_parameters], x)
    mu0, mu1, T0 = (tables[name] for name in ("mu_0", "mu_1", "T_0"))
    T1 = tables.get("T_1", np.zeros_like(x))
    basis = np.stack([mu0, x * mu1])
    gram, overlap = (basis * w) @ basis.T, (basis * w) @ T0
    square = float(w @ tables["T_2"]) - model.noise_variance
    slope, size = float(w @ (mu1 * T1)), float(w @ mu1**2)
    upper = square - overlap[0] ** 2 / gram[0, 0]
    lower = square - overlap @ np.linalg.solve(gram, overlap) - slope**2 / size
    c, beta, tail = model.spike.bulk_variance, model.beta, float(w @ tables["mu_2_squared"])
    V2 = float(Resolvent(*(sp.Float(v, 20) for v in (tail, size * c, beta))).evalf(20))
    V1 = c * V2 / (1 + beta * size * c * V2)
    cost = gram + np.diag([0, 1 / (beta * c * V2)])
    limit = square - overlap @ np.linalg.solve(cost, overlap) - beta * V1 * slope**2
    return float(upper), float(lower), float(limit)


def _least_test_error(model: SpikedRandomFeatures, alpha: float) -> float:
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda exponent: model.solve(alpha=alpha, ridge=float(10.0**exponent)).test_error,
        bounds=(-4, 7),
        method="bounded",
        options={"xatol": 1e-4},
    )
    return float(found.fun)
