"""Claims: the closed form of several letters, biases that are learned, spikes of larger rank."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import sympy as sp

from ....numeric.letter_saddle_point import conditional_variance_problem, solve_letters
from ....numeric.positive_minimum import expansion
from ....symbolic.expressions.activations import activation
from ....symbolic.printing.compiled import compiled
from ...claims import Finding, Status, declare_claim, evidence
from ...identities import cancels, identities_hold
from .. import physics as fe
from ..model import SpikedRandomFeatures
from .model import VocabularyFeatures
from .reference import REFERENCES

_PAPER = "Cui, Pesce, Dandi, Krzakala, Lu, Zdeborová, Loureiro, arXiv 2402.04980"

declare_claim(
    "cui-vocabulary",
    title="Ridge regression on several kinds of rows, in closed form",
    statement=(
        r"With K letters of fractions $\pi_a$ and independent bulk rows, the conditional variances "
        r"$V_1 \in \mathbb{R}^{K\times K}$ and $V_2$ are the minimum of "
        r"$$F = \tfrac{\alpha}{\beta}\langle\log(1 + \mu_1^\top V_1\mu_1 + "
        r"\sum_a(\mu_2^a)^2V_2^a)\rangle - \tfrac1\beta\log\det V_1 + "
        r"\sum_a\Big[(\tfrac1\beta - \pi_a)\log V_2^a + \frac{V_1^{aa}}{\beta V_2^a} + "
        r"\lambda V_2^a\Big],$$ strictly convex along the curves "
        r"$V_1 = Le^{\tau S}L^\top$, $V_2^a = v_ae^{\tau s_a}$ that join any two points, and "
        r"with no other stationary point (derived in ``physics.py``); "
        r"the conjugates are $\beta\hat V_1 = V_1^{-1} - \mathrm{diag}(1/V_2)$. All other order "
        r"parameters are linear given these, with a cost $m_a^2/(2pV_2^a)$ of the overlaps m at "
        r"width p, which is not small for letters that do nearly the same."
    ),
    source=f"{_PAPER}, appendix C.8 with traces over finite matrices; the closed form and the "
    "convexity of F are derived here; the replica method is not proved by it",
    status=Status.DERIVED_HERE,
)


@evidence("cui-vocabulary", "exact", "F from the log determinant, K = 1, 2")
def legendre_transform() -> Finding:
    """Check that log det Γ is stationary where S says, and that its transform is S, exactly."""
    results: dict[str, bool] = {}
    for letters in (1, 2):
        v1, v2, fractions = _symbols(letters)
        levels, resolvents, shifts = (
            sp.symbols(f"{name}_1:{letters + 1}", positive=True) for name in ("L", "M", "d")
        )
        hats = sp.Matrix(letters, letters, lambda i, j: sp.Symbol(f"h_{min(i, j)}{max(i, j)}"))
        gamma = fe.log_determinant(hats, levels, fractions, resolvents, shifts)
        transform = fe.legendre_transform(v1, v2, fractions)
        # The conjugates as derivatives of S; M and δ from their definitions.
        entries = [(i, j) for i in range(letters) for j in range(i, letters)]
        at: dict[sp.Expr, sp.Expr] = {
            hats[i, j]: transform.diff(v1[i, j]) / (1 if i == j else 2) for i, j in entries
        }
        # Λ contains λ already: S without it.
        at |= {x: transform.diff(v) + fe.ridge for x, v in zip(levels, v2, strict=True)}
        at |= {x: v / p for x, v, p in zip(resolvents, v2, fractions, strict=True)}
        at |= {
            x: p / v - at[level]
            for x, v, p, level in zip(shifts, v2, fractions, levels, strict=True)
        }
        conditions = {
            **{f"stationary in {x}": gamma.diff(x) for x in (*resolvents, *shifts)},
            **{
                f"derivative by {level} is V2": gamma.diff(level) - v
                for level, v in zip(levels, v2, strict=True)
            },
            **{
                f"derivative by {hats[i, j]} is V1": gamma.diff(hats[i, j])
                - v1[i, j] * (1 if i == j else 2)
                for i, j in entries
            },
        }
        for name, condition in conditions.items():
            results[f"K = {letters}: {name}"] = cancels(condition.xreplace(at))
    return identities_hold(results, "log det of K letters is stationary at the closed form of S")


def _symbols(letters: int) -> tuple[sp.Matrix, tuple[sp.Symbol, ...], tuple[sp.Symbol, ...]]:
    v1 = sp.Matrix(
        letters, letters, lambda i, j: sp.Symbol(f"V1_{min(i, j)}{max(i, j)}", positive=True)
    )
    v2 = sp.symbols(f"V2_1:{letters + 1}", positive=True)
    return v1, v2, sp.symbols(f"pi_1:{letters + 1}", positive=True)


@evidence("cui-vocabulary", "quadrature", "Hessians of F at random points: the proof, numerically")
def convexity() -> Finding:
    """Expand F at random points: its Hessian along the curves of the proof is positive."""
    rng = np.random.default_rng(0)
    smallest = []
    for letters, bulk in itertools.product((1, 2, 4), ("iid", "orthonormal")):
        model = _random_model(rng, letters, bulk)
        arrays, _ = model.quadrature.arrays(0)
        for _ in range(10):
            problem = conditional_variance_problem(
                model.quadrature.equations, arrays, model.parameters.fractions, beta=model.beta,
                alpha=float(10.0 ** rng.uniform(-2, 2)), ridge=float(10.0 ** rng.uniform(-6, 2)),
            )  # fmt: skip
            root = rng.standard_normal((letters, letters))
            numbers = 10.0 ** rng.uniform(-2, 2, letters)
            hessian = expansion(problem, root, numbers).hessian
            scale = np.sqrt(np.diag(hessian))
            smallest.append(float(np.linalg.eigvalsh(hessian / np.outer(scale, scale))[0]))
    least = min(smallest)
    return Finding(
        least > -1e-12,
        f"the smallest eigenvalue of {len(smallest)} scaled Hessians is {least:.1e}",
        {"eigenvalues": smallest},
    )


def _random_model(rng: np.random.Generator, letters: int, bulk: str) -> VocabularyFeatures:
    fractions = rng.dirichlet(np.full(letters, 3.0))
    return VocabularyFeatures.from_parameters(
        "erf", "sin", spike_strengths=rng.uniform(-2, 2, letters).tolist(),
        bulk_variances=rng.uniform(0.5, 1.5, letters).tolist(), fractions=fractions.tolist(),
        biases=rng.uniform(-1, 1, letters).tolist(), alignment=float(rng.uniform(-1, 1)),
        beta=float(rng.uniform(0.2, 1.0)), noise_variance=float(rng.uniform(0, 0.3)), bulk=bulk,
    )  # fmt: skip


@evidence("cui-vocabulary", "quadrature", "the free energy written out for K = 2")
def stationary() -> Finding:
    """Solve two letters, and differentiate the free energy with every entry written out."""
    largest = {}
    for bulk in ("iid", "orthonormal"):
        for width in (None, 600):
            largest[f"{bulk}, width {width}"] = stationarity_residual(bulk, width)
    worst = max(largest.values())
    return Finding(worst < 1e-12, f"all derivatives vanish to {worst:.1e}", largest)


def stationarity_residual(bulk: str, width: int | None) -> float:
    """Return the largest derivative of the explicit free energy of two letters at the solution."""
    model = VocabularyFeatures.from_parameters(
        "erf", "sin", spike_strengths=[1.2, -0.6], bulk_variances=[1.1, 1.02], fractions=[0.4, 0.6],
        biases=[0.3, 0.0], alignment=0.9, beta=0.7, noise_variance=0.1, bulk=bulk,
    )  # fmt: skip
    solution = model.solve(alpha=2, ridge=0.1, width=width)
    explicit = fe.letters_free_energy(activation("erf"), activation("sin"), 2, bulk).free_energy
    arrays, _ = model.quadrature.arrays(0)
    point: dict[str, float] = {
        "alpha": 2.0, "beta": 0.7, "lambda": 0.1, "p_inv": 1 / width if width else 0.0,
    }  # fmt: skip
    tables: dict[str, Any] = {"T_0": arrays.T0, "T_1": arrays.T1[:, 0], "T_2": arrays.T2}
    for a in range(2):
        point |= {f"pi_{a + 1}": model.parameters.fractions[a], f"m_{a + 1}": solution.m[a]}
        point |= {f"theta_{a + 1}": solution.theta[0, a], f"psi_{a + 1}": solution.psi[0, a]}
        point |= {f"V2_{a + 1}": solution.V2[a], f"q2_{a + 1}": solution.q2[a]}
        for b in range(a, 2):
            point |= {f"V1_{a + 1}{b + 1}": solution.V1[a, b]}
            point |= {f"q1_{a + 1}{b + 1}": solution.q1[a, b]}
        for name in ("mu0", "mu1", "mu2_squared"):
            tables[f"{name}_{a + 1}"] = getattr(arrays, name)[:, a]
    return max(
        abs(_average(explicit.expression.diff(x), point, tables, arrays))
        for x in explicit.order_parameters
    )


def _average(
    expression: sp.Expr, point: dict[str, float], tables: dict[str, Any], arrays: Any
) -> float:
    """Evaluate an expression linear in averages over κ, by the nodes of a rule."""
    total = 0.0
    marks: dict[sp.Expr, sp.Expr] = {}
    for node in expression.atoms(fe.GaussianExpectation):
        functions = {
            f: sp.Symbol(f"table_{f.func}")
            for f in node.integrand.atoms(sp.core.function.AppliedUndef)
        }
        integrand = node.integrand.xreplace(functions)
        symbols = sorted(integrand.free_symbols, key=str)
        known = {f"table_{name}": values for name, values in tables.items()}
        known |= {"kappa": arrays.kappa[:, 0], **point}
        values = compiled(integrand, symbols)(*(known[str(s)] for s in symbols))
        marks[node] = sp.Float(float(np.sum(arrays.weights * values)))
    rest = expression.xreplace(marks)
    total += float(rest.subs({s: point[str(s)] for s in rest.free_symbols}))
    return total


@evidence("cui-vocabulary", "quadrature", "known values")
def reference_values() -> Finding:
    """Compare with the known values."""
    deviations = {}
    for case in REFERENCES:
        model = VocabularyFeatures.from_parameters(**case.model)
        found = model.solve(alpha=case.alpha, ridge=case.ridge, width=case.width)
        deviations[case.name] = max(
            float(np.max(np.abs(getattr(found, name) - np.array(value)))) / case.tolerance
            for name, value in case.values.items()
        )
    worst = max(deviations.values())
    return Finding(
        worst <= 1,
        f"{len(deviations)} sets of values agree to {worst:.2f} units of their last digit",
        deviations,
    )


@evidence("cui-vocabulary", "quadrature", "equal and opposite letters are one letter")
def reductions() -> Finding:
    """Compare equal and opposite letters, and split ones, with one letter."""
    changes = {}
    for width in (None, 400):
        single = SpikedRandomFeatures.from_parameters(
            "erf", "sin", spike_strength=1.3, bulk_variance=1.1, alignment=0.8, beta=0.7,
            noise_variance=0.1, width=width,
        )  # fmt: skip
        expected = single.solve(alpha=1.5, ridge=0.1).test_error
        for name, strengths in {
            "one letter": [1.3], "equal letters": [1.3, 1.3], "opposite letters": [1.3, -1.3],
        }.items():  # fmt: skip
            k = len(strengths)
            model = VocabularyFeatures.from_parameters(
                "erf", "sin", spike_strengths=strengths, bulk_variances=[1.1] * k,
                fractions=[0.3, 0.7][:k] if k > 1 else [1.0], alignment=0.8, beta=0.7,
                noise_variance=0.1,
            )  # fmt: skip
            found = model.solve(alpha=1.5, ridge=0.1, width=width).test_error
            changes[f"{name}, width {width}"] = abs(found / expected - 1)
        # The same letter twice, not merged: the solver takes the solution of least cost.
        arrays, _ = model.quadrature.arrays(0)
        twice = solve_letters(
            model.quadrature.equations, arrays, np.array([0.5, 0.5]),
            alpha=1.5, beta=0.7, ridge=0.1, inverse_width=0.0 if width is None else 1 / width,
        )  # fmt: skip
        changes[f"other fractions, width {width}"] = abs((twice.test_error - 0.1) / expected - 1)
    worst = max(changes.values())
    return Finding(worst < 1e-11, f"relative changes are at most {worst:.1e}", changes)


@evidence("cui-vocabulary", "quadrature", "training error, norm and free energy")
def energy_identity() -> Finding:
    """Compare training error plus penalty with the free energy, for random letters."""
    rng = np.random.default_rng(1)
    differences = []
    for letters, bulk, width in itertools.product((1, 2, 3), ("iid", "orthonormal"), (None, 500)):
        model = _random_model(rng, letters, bulk)
        alpha, ridge = 10.0 ** rng.uniform(-1, 1), 10.0 ** rng.uniform(-3, 1)
        found = model.solve(alpha=alpha, ridge=ridge, width=width)
        left = found.training_error + ridge * model.beta / alpha * float(np.sum(found.q2))
        differences.append(abs(left / found.regularised_training_error - 1))
    worst = max(differences)
    return Finding(
        worst < 1e-11,
        f"{len(differences)} cases agree to relative {worst:.1e}",
        {"all": differences},
    )


@evidence("cui-vocabulary", "simulation", "two letters at d = 200", slow=True)
def simulated_letters() -> Finding:
    """Draw two letters at small size, and compare with the theory at that width."""
    model = VocabularyFeatures.from_parameters(**REFERENCES[0].model)
    return _simulated(model, dimension=200, seeds=24, alpha=2.0, ridge=0.1)


def _simulated(
    model: VocabularyFeatures, *, dimension: int, seeds: int, alpha: float, ridge: float
) -> Finding:
    simulation = model.simulate(dimension, alpha=[alpha], ridge=ridge, seeds=seeds, progress=False)
    theory = model.solve(alpha=alpha, ridge=ridge, width=round(model.beta * dimension))
    deviations, details = [], {}
    for name in ("test_error", "training_error"):
        mean = float(simulation[f"{name}_mean"][0])
        error = float(simulation[f"{name}_standard_error"][0])
        expected = getattr(theory, name)
        # Besides the ridge cost of m there are corrections of order 1/d: 1 % at d = 200.
        deviations.append(max(abs(mean - expected) - 2 / dimension * expected, 0.0) / error)
        details[name] = {"simulated": mean, "standard error": error, "theory": expected}
    worst = max(deviations)
    return Finding(
        worst < 4,
        f"errors at d = {dimension} deviate by at most {worst:.1f} standard errors beyond "
        f"{200 / dimension:.0f} %",
        details,
    )


declare_claim(
    "cui-learned-bias",
    title="A learned bias may have several local minima, and the lowest may not generalise best",
    statement=(
        r"A common bias $b$ that is trained with the readout is a stationary point of the free "
        r"energy in $b$. For an erf student of $r = 1.2$, $c = 1.1$, $\gamma = 0.9$ and a relu "
        r"teacher at $\alpha = 2$, $\lambda = 0.1$ there are two local minima of the training "
        r"objective, and the global one "
        r"has the larger test error."
    ),
    source=f"{_PAPER}, appendix D; the example is computed here",
    status=Status.DERIVED_HERE,
)


@evidence("cui-learned-bias", "quadrature", "both minima with their errors")
def local_minima() -> Finding:
    """Find both biases at which the training objective of erf on relu is least."""
    model = VocabularyFeatures.from_parameters(
        "erf", "relu", spike_strengths=[1.2], bulk_variances=[1.1], fractions=[1.0], alignment=0.9
    )
    found = model.learned_bias(alpha=2, ridge=0.1)
    expected = ((-2.347, 0.3042), (0.6763, 0.23442))
    passed = len(found.minima) == 2 and all(
        abs(x.bias - b) < 1e-3 and abs(x.test_error / e - 1) < 2e-4
        for x, (b, e) in zip(found.minima, expected, strict=True)
    )
    passed = passed and found.best is found.minima[0]
    shown = "; ".join(f"bias {x.bias:.5f}, test error {x.test_error:.6f}" for x in found.minima)
    return Finding(passed, f"{shown}; the first is the global minimum", {})


declare_claim(
    "cui-larger-rank",
    title="Spikes of larger rank",
    statement=(
        r"For rows $w_j = \sqrt{c_a}u_j + \sum_l R_{a,l}v_l$ the coefficients are functions of "
        r"$R_a\cdot\kappa$, $\kappa \sim \mathcal{N}(0, I_k)$, and each direction has its own "
        r"overlap $\vartheta_l$ at the cost $\sum_a\vartheta_{l,a}^2/(2\beta V_2^a)$."
    ),
    source=f"{_PAPER}, appendix D",
    status=Status.REPLICA,
)


@evidence("cui-larger-rank", "quadrature", "turned frames, parallel spikes")
def larger_rank() -> Finding:
    """Check that the frame of the spikes does not matter, and that parallel spikes are one."""
    given: dict[str, Any] = {
        "student": "tanh", "teacher": "sin", "bulk_variances": [1.1, 1.02], "fractions": [0.4, 0.6],
        "beta": 0.7, "width": 500,
    }  # fmt: skip
    strengths, gamma = np.array([[1.2, 0.3], [-0.6, 0.8]]), np.array([0.6, 0.5])
    turn = np.array([[np.cos(0.7), -np.sin(0.7)], [np.sin(0.7), np.cos(0.7)]])
    make = VocabularyFeatures.from_parameters
    plain = make(spike_strengths=strengths.tolist(), alignment=gamma, **given)
    turned = make(spike_strengths=(strengths @ turn).tolist(), alignment=gamma @ turn, **given)
    parallel = make(
        spike_strengths=np.outer([1.2, -0.5], [0.6, 0.8]).tolist(), alignment=[0.3, 0.7], **given
    )
    single = make(spike_strengths=[1.2, -0.5], alignment=0.3 * 0.6 + 0.7 * 0.8, **given)
    errors = [x.solve(alpha=2, ridge=0.1).test_error for x in (plain, turned, parallel, single)]
    changes = {
        "turned frame": abs(errors[1] / errors[0] - 1),
        "parallel spikes": abs(errors[2] / errors[3] - 1),
    }
    worst = max(changes.values())
    return Finding(worst < 1e-11, f"relative changes are at most {worst:.1e}", changes)


@evidence("cui-larger-rank", "simulation", "rank two at d = 200", slow=True)
def simulated_rank() -> Finding:
    """Draw spikes of rank two at small size."""
    model = VocabularyFeatures.from_parameters(
        "tanh", "sin", spike_strengths=[[1.2, 0.3], [-0.6, 0.8]], bulk_variances=[1.1, 1.02],
        fractions=[0.4, 0.6], alignment=[0.6, 0.5], beta=0.7,
    )  # fmt: skip
    return _simulated(model, dimension=200, seeds=24, alpha=2.0, ridge=0.1)
