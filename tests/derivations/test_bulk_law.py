"""The law of spectrum and overlaps of the bulk as an argument."""

from __future__ import annotations

import html
import math
import pickle
import re
import types

import mpmath
import numpy as np
import pytest

import giantstep as gs
from giantstep.derivations.curve_report import html_report
from giantstep.errors import ExpressionError, ParameterError, UnsupportedExpressionError

LEVELS, SHARES = (0.5, 2.5), (0.75, 0.25)
SPIKE = {"spike_strength": 1.2, "alignment": 0.8, "noise_variance": 0.1}
RESULTS = ("test_error", "training_error", "V1", "V2", "m", "theta", "psi", "q1", "q2")


def two_levels(**options):
    return gs.BulkLaw.from_eigenvalues(LEVELS, weights=SHARES, **options)


def model_of(bulk, *, beta=0.5, variance=1.0, student="sin", **options):
    return gs.SpikedRandomFeatures.from_parameters(
        student, "sin", beta=beta, bulk_variance=variance, bulk=bulk, **SPIKE, **options
    )


def marchenko_pastur(beta, variance):
    """Return density, domain and atoms of the law of independent rows, as texts."""
    ends = [f"{variance}*(1 {sign} sqrt({beta}))**2" for sign in "-+"]
    density = f"sqrt(({ends[1]} - x)*(x - ({ends[0]})))/(2*pi*{variance}*{beta}*x)"
    return density, ends, {0: 1 - 1 / beta} if beta > 1 else None


# ---------------------------------------------------------------------- independent rows


@pytest.mark.parametrize(("beta", "variance"), [(0.5, 1.0), (1.0, 1.1), (2.0, 1.3)])
def test_the_density_of_marchenko_and_pastur_gives_the_default(beta, variance):
    # The closed forms of the default know that F is independent of D; this one finds it by
    # isotropy.
    density, ends, atoms = marchenko_pastur(beta, variance)
    law = gs.BulkLaw.from_density(density, ends, atoms=atoms)
    assert law.bulk_variance == pytest.approx(variance, rel=1e-14)
    given, default = (model_of(b, beta=beta, variance=variance) for b in (law, "iid"))
    for alpha, ridge in ((0.7, 0.1), (2.0, 1e-3), (3.0, 10.0)):
        found, wanted = (m.solve(alpha=alpha, ridge=ridge) for m in (given, default))
        for name in RESULTS:
            assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=2e-13), name


@pytest.mark.slow
def test_overlaps_that_are_given_give_the_default():
    # Quantiles in the angle that makes the density smooth; F, G and H at their limits c, 0 and D.
    c, beta, size = 1.1, 0.5, 1000
    angles = (np.arange(size) + 0.5) * math.pi / size
    x = 1 + beta + 2 * math.sqrt(beta) * np.cos(angles)
    weight = (2 * math.sqrt(beta) * np.sin(angles)) ** 2 / x
    law = gs.BulkLaw.from_eigenvalues(c * x, weights=weight / weight.sum(), F=np.full(size, c))
    assert repr(law) == "BulkLaw(1000 eigenvalues, mean 1.1, overlaps)"
    given, default = (model_of(b, variance=c, width=200) for b in (law, "iid"))
    for alpha in (0.7, 2.0):
        found, wanted = (m.solve(alpha=alpha, ridge=0.1) for m in (given, default))
        for name in RESULTS:
            assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=1e-12), name


def test_a_large_sample_of_independent_rows_gives_the_default_up_to_its_size():
    generator = np.random.default_rng(1)
    rows = generator.standard_normal((400, 800))
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    spectrum = gs.BulkLaw.from_eigenvalues(np.linalg.eigvalsh(rows @ rows.T)).scaled(1.0)
    found, wanted = (model_of(b).solve(alpha=2, ridge=0.1) for b in (spectrum, "iid"))
    for name in ("test_error", "training_error", "V1", "V2", "q1", "q2"):
        # Eigenvalues are rigid: their averages are off by 1/d.
        assert getattr(found, name) == pytest.approx(getattr(wanted, name), rel=5 / 800), name
    spike, teacher = np.eye(800)[:2]
    law = gs.BulkLaw.from_matrix(rows, spike, teacher)
    assert law.bulk_variance == pytest.approx(np.sum(rows[:, 1:] ** 2) / 400, rel=1e-13)
    one = model_of(law, variance=law.bulk_variance).solve(alpha=2, ridge=0.1)
    # Overlaps of one matrix scatter by 1/sqrt(p).
    assert one.test_error == pytest.approx(wanted.test_error, rel=0.1)
    assert one.test_error != pytest.approx(wanted.test_error, rel=1e-4)


# ---------------------------------------------------------------------- other laws


@pytest.mark.parametrize("beta", [0.8, 1.0])
def test_an_orthonormal_frame_gives_what_letters_give(beta):
    # Derived there from the frame itself, here from its law: two ways to one number.
    features = model_of("orthonormal", beta=beta, variance=1.3)
    letters = gs.VocabularyFeatures.from_parameters(
        "sin", "sin", spike_strengths=[1.2], bulk_variances=[1.3], fractions=[1.0], alignment=0.8,
        beta=beta, noise_variance=0.1, bulk="orthonormal",
    )  # fmt: skip
    for alpha in (0.5, 2.0):
        found, wanted = (m.solve(alpha=alpha, ridge=0.1) for m in (features, letters))
        assert found.test_error == pytest.approx(wanted.test_error, rel=1e-12)
        assert found.training_error == pytest.approx(wanted.training_error, rel=1e-12)


def test_overlaps_of_an_isotropic_bulk_are_those_of_its_matrices():
    # E[F/S] = J/(1 - βbJ) against linear algebra on rows with random singular vectors.
    beta, a, b = 0.5, 0.3, 0.7
    level = np.array(LEVELS)
    mean = np.average(level / (a + b * level), weights=SHARES)
    found = []
    for seed in range(8):
        rows = _isotropic_rows(np.random.default_rng(seed), 120, 240)[0]
        law = gs.BulkLaw.from_matrix(rows, *np.eye(240)[:2])
        table = law.table()
        c = law.bulk_variance
        found.append(np.mean(c * table["F"] / (a + b * c * table["D"])))
    error = np.std(found, ddof=1) / math.sqrt(len(found))
    assert error < 0.1
    assert np.mean(found) == pytest.approx(mean / (1 - beta * b * mean), abs=4 * error)


def _isotropic_rows(generator, p, d, level=LEVELS):
    """Rows with a two-level spectrum, and the eigenvectors of their Gram matrix."""
    left = np.linalg.qr(generator.standard_normal((p, p)))[0]
    right = np.linalg.qr(generator.standard_normal((d, p)))[0]
    levels = np.repeat(level, [round(share * p) for share in SHARES])
    return (left * np.sqrt(levels)) @ right.T, left


@pytest.mark.parametrize("penalty", [None, (1.0, 3.0)])
def test_two_levels_against_the_equations_solved_directly(penalty):
    model = model_of(two_levels(penalty=penalty))
    found = model.solve(alpha=2, ridge=0.1, digits=30, progress=False)
    ctx = mpmath.mp.clone()
    ctx.dps = 40
    wanted = _direct_solution(ctx, (1, 1) if penalty is None else (1, 3))
    for name, value in wanted.items():
        error = abs(ctx.mpf(getattr(found, name)) - value)
        assert error < ctx.mpf(10) ** -28 * abs(value), name
    floats = model.solve(alpha=2, ridge=0.1)
    assert floats.test_error == pytest.approx(float(wanted["test_error"]), rel=1e-13)


def _direct_solution(ctx, penalty):
    """Result 3.3 for sin and sin with Ω = diag(D) - b bᵀ written out, b_i² = β w_i D_i."""
    alpha, beta, ridge, noise, r, gamma = map(ctx.mpf, ("2", ".5", ".1", ".1", "1.2", ".8"))
    rho2 = 1 - gamma**2
    step = ctx.mpf(1) / 12
    kappa = [k * step for k in range(-12 * 13, 12 * 13 + 1)]
    density = [step * ctx.npdf(k) for k in kappa]

    def mean(values):
        return ctx.fdot(density, values)

    half = ctx.exp(-ctx.mpf(1) / 2)
    mu0 = [half * ctx.sin(r * k) for k in kappa]
    slope = [half * ctx.cos(r * k) for k in kappa]
    square = [(1 - ctx.exp(-2) * ctx.cos(2 * r * k)) / 2 for k in kappa]
    A1 = [s**2 for s in slope]
    A2 = [e - u**2 - s for e, u, s in zip(square, mu0, A1, strict=True)]
    damping = ctx.exp(-rho2 / 2)
    T0 = [damping * ctx.sin(gamma * k) for k in kappa]
    T1 = [ctx.sqrt(rho2) * damping * ctx.cos(gamma * k) for k in kappa]
    T2 = [(1 - ctx.exp(-2 * rho2) * ctx.cos(2 * gamma * k)) / 2 + noise for k in kappa]

    levels, shares = ([ctx.mpf(x) for x in values] for values in (LEVELS, SHARES))
    b = ctx.matrix([ctx.sqrt(beta * w * x) for w, x in zip(shares, levels, strict=True)])
    omega = ctx.diag(levels) - b * b.T

    def spectral(V1_hat, V2_hat):
        S = [ridge * P + V2_hat + V1_hat * x for P, x in zip(penalty, levels, strict=True)]
        return S, ctx.inverse(
            ridge * ctx.diag([ctx.mpf(P) for P in penalty])
            + V2_hat * ctx.eye(2) + V1_hat * omega
        )  # fmt: skip

    def over(S, k, power):
        return sum(w * x**k / s**power for w, x, s in zip(shares, levels, S, strict=True))

    def hats(V1, V2):
        inverse = [1 / (1 + x * V1 + y * V2) for x, y in zip(A1, A2, strict=True)]
        return inverse, [
            alpha / beta * mean([x * i for x, i in zip(A, inverse, strict=True)]) for A in (A1, A2)
        ]

    def residual(V1, V2):
        S, _ = spectral(*hats(V1, V2)[1])
        return [over(S, 1, 1) - V1, over(S, 0, 1) - V2]

    V1, V2 = ctx.findroot(residual, (1, 1.5))
    inverse, (V1_hat, V2_hat) = hats(V1, V2)
    S, resolvent = spectral(V1_hat, V2_hat)

    def weighted(*factors, power=1):
        columns = zip(inverse, *factors, strict=True)
        return mean([i**power * ctx.fprod(rest) for i, *rest in columns])

    along = [k * s for k, s in zip(kappa, slope, strict=True)]
    of_spike = (b.T * resolvent * b)[0]
    # ϑ = β ϑ̂ E[F/S] = ϑ̂ bᵀ S⁻¹ b, up to the β of b.
    system = ctx.matrix([
        [weighted(mu0, mu0), weighted(mu0, along)],
        [weighted(along, mu0), weighted(along, along) + beta / (alpha * of_spike)],
    ])  # fmt: skip
    m, theta = ctx.lu_solve(system, ctx.matrix([weighted(mu0, T0), weighted(along, T0)]))
    theta_hat = theta / of_spike
    psi_hat = alpha / beta * weighted(slope, T1)
    psi = beta * psi_hat * over(S, 1, 1)
    rest = [
        t2 - 2 * t0 * c - 2 * s * psi * t1 + c**2
        for t2, t0, t1, s, c in (
            (t2, t0, t1, s, u * m + x * theta)
            for t2, t0, t1, s, u, x in zip(T2, T0, T1, slope, mu0, along, strict=True)
        )
    ]
    R = [[over(S, 2, 2), over(S, 1, 2)], [over(S, 1, 2), over(S, 0, 2)]]
    A = (A1, A2)
    J = [[alpha / beta * weighted(x, y, power=2) for y in A] for x in A]
    own = [
        theta_hat**2 * (b.T * resolvent * omega * resolvent * b)[0]
        + beta * psi_hat**2 * over(S, 2, 2),
        theta_hat**2 * (b.T * resolvent**2 * b)[0] + beta * psi_hat**2 * over(S, 1, 2),
    ]
    hat0 = [alpha / beta * weighted(x, rest, power=2) for x in A]
    right = [own[i] + sum(R[i][j] * hat0[j] for j in range(2)) for i in range(2)]
    matrix = ctx.eye(2) - ctx.matrix(R) * ctx.matrix(J)
    q1, q2 = ctx.lu_solve(matrix, ctx.matrix(right))
    error = [e + x * q1 + y * q2 for e, x, y in zip(rest, A1, A2, strict=True)]
    return {
        "test_error": mean(error) - noise,
        "training_error": weighted(error, power=2),
        "V1": V1, "V2": V2, "m": m, "theta": theta, "psi": psi, "q1": q1, "q2": q2,
    }  # fmt: skip


# ---------------------------------------------------------------------- as part of a model


def test_a_law_is_part_of_a_model_like_any_argument():
    density, ends, atoms = marchenko_pastur(2.0, 1.0)
    laws = (
        two_levels(),
        two_levels(F=[1.0, 0.5], penalty=[1.0, 2.0]),
        gs.BulkLaw.from_density(density, ends, atoms=atoms, penalty="1 + x"),
        "orthonormal",
    )
    for law in laws:
        model = model_of(law, beta=2.0 if law is laws[2] else 0.5)
        again = gs.SpikedRandomFeatures.from_json(model.to_json())
        assert again == model and hash(again) == hash(model)
        assert pickle.loads(pickle.dumps(model)) == model
        assert repr(law) in repr(model)
        assert again.solve(alpha=2, ridge=0.1) == model.solve(alpha=2, ridge=0.1)
    assert model_of(two_levels()) != model_of("iid")
    assert "bulk" not in model_of("iid").parameters()
    wider = model_of(two_levels()).at(bulk_variance=2.0)
    assert wider == model_of(two_levels().scaled(2.0), variance=2.0)
    assert repr(two_levels(penalty=[1, 2])) == "BulkLaw(2 eigenvalues, mean 1, isotropic, penalty)"
    assert "Averages" not in str(model_of(two_levels()).symbolic()._repr_latex_())


def test_curves_and_kernels_take_the_law_along():
    model = model_of(two_levels(), student="erf")
    curve = model.curve(alpha=[1.0, 2.0], bulk_variance=[1.0, 1.5], ridge=0.1, progress=False)
    corner = model.at(bulk_variance=1.5).solve(alpha=2, ridge=0.1)
    assert float(curve["test_error"][1, 1]) == corner.test_error
    kernel = model.kernel()
    assert kernel.solve(alpha=2, ridge=0.1).test_error == model.solve(alpha=2, ridge=0.1).test_error
    for ask in (kernel.solve, kernel.curve, model.curve):
        with pytest.raises(ParameterError, match="of the eigenvalues vanishes"):
            ask(alpha=2.0, ridge=0.1, beta=2.0)
    one_level = {"D": [1.0], "P": [1.0]}
    frame = model_of("orthonormal", student="erf").solve(alpha=2, ridge=0.1).test_error
    assert kernel.solve(alpha=2, ridge=0.1, data=one_level).test_error == frame
    # The law that is given counts: half of its eigenvalues may vanish, or none.
    with pytest.raises(ParameterError, match=r"at least 0\.5 of the eigenvalues .* it is 0"):
        kernel.solve(alpha=2, ridge=0.1, beta=2.0, data=one_level)
    half = {"bulk": {"D": [0.0, 2.0], "P": [1.0, 1.0]}}
    assert kernel.solve(alpha=2, ridge=0.1, beta=2.0, data=half).test_error > 0
    for language in ("c", "julia", "jax"):
        assert "bulk_D" in "".join(kernel.files(language).values())
    (source,) = kernel.files("python").values()
    file = types.ModuleType("saddle_point")
    exec(source, vars(file))
    known = {**kernel.defaults, "alpha": 2.0, "ridge": 0.1}
    row = [known[name] for name in kernel.parameters if name != "orthogonal_alignment"]
    found = file.solve_many(np.array([row]), data={"bulk": two_levels().table()})
    assert np.ravel(found[0])[0] == pytest.approx(model.solve(alpha=2, ridge=0.1).test_error)
    with pytest.raises(UnsupportedExpressionError, match="averages over data"):
        model.solve(alpha=2, ridge=0.1, certify=True)


@pytest.mark.slow
def test_optima_and_sensitivities_are_those_of_the_solutions():
    model = model_of(two_levels(penalty=[1.0, 2.0]), student="erf")
    best = model.optimum(over="ridge", alpha=2.0)
    assert best.is_interior
    for factor in (0.9, 1.1):
        assert model.solve(alpha=2, ridge=best.ridge * factor).test_error > best.test_error
    found = model.sensitivities(alpha=2, ridge=0.1)
    for name, value in (("beta", 0.5), ("bulk_variance", 1.0), ("spike_strength", 1.2)):
        step = 1e-4
        ends = [
            model.at(**{name: value + sign * step}).solve(alpha=2, ridge=0.1).test_error
            for sign in (-1, 1)
        ]
        slope = (ends[1] - ends[0]) / (2 * step)
        assert found["test_error", name] == pytest.approx(slope, rel=1e-6)


@pytest.mark.slow
def test_the_square_loss_as_a_convex_one_takes_any_law():
    model = model_of(two_levels(F=[1.0, 0.5]), student="erf")
    square, ridge = (m.solve(alpha=2, ridge=0.1) for m in (model.with_loss("square"), model))
    assert square.test_error == pytest.approx(ridge.test_error, rel=1e-11)
    assert square.training_loss * 2 == pytest.approx(ridge.training_error, rel=1e-11)


@pytest.mark.slow
def test_the_objective_counts_the_penalty_of_the_law():
    # Its derivative by λ is that of the penalty alone, as the readout is where it is smallest.
    readout = model_of(two_levels(penalty=[1.0, 8.0]), student="erf").with_loss("square")
    below, here, above = (readout.solve(alpha=2, ridge=r).objective for r in (0.999, 1.0, 1.001))
    found = readout.solve(alpha=2, ridge=1.0)
    assert here - found.training_loss == pytest.approx((above - below) / 0.002, rel=1e-6)


def test_a_report_holds_the_law_and_code_that_makes_it():
    model = model_of(two_levels(), student="erf")
    curve = model.curve(alpha=[1.0, 2.0], ridge=0.1, progress=False).to_dataset()
    page = html.unescape(html_report(model, curve))
    (line,) = re.findall(r"^model = (.+)$", page, re.MULTILINE)
    assert eval(line, {"gs": gs}) == model
    assert "means over the rows of the law BulkLaw(2 eigenvalues" in page


@pytest.mark.slow
def test_digits_of_a_density_are_those_of_its_integrals():
    density, ends, _ = marchenko_pastur(0.5, 1.0)
    given, default = (model_of(b) for b in (gs.BulkLaw.from_density(density, ends), "iid"))
    found, wanted = (
        m.solve(alpha=2, ridge=0.1, digits=25, progress=False) for m in (given, default)
    )
    for name in ("test_error", "theta", "q2"):
        one, other = getattr(found, name), getattr(wanted, name)
        assert abs(one - other) < 1e-23 * abs(other)


@pytest.mark.parametrize("student", ["erf", pytest.param("relu", marks=pytest.mark.slow)])
def test_norm_overlaps_and_stretches_that_are_given_are_those_of_a_step(student):
    model = gs.SpikedRandomFeatures(
        student, "sin", step_size=1, alpha0=20, leading_order="complete", allow_non_odd=True
    )
    spike = model.spike
    given = gs.SpikedRandomFeatures.from_parameters(
        student, "sin", spike_strength=spike.spike_strength,
        bulk_variance=spike.bulk_variance, alignment=spike.alignment,
        norm_overlap=spike.norm_overlap, stretch=spike.stretch,
    )  # fmt: skip
    found, wanted = (m.solve(alpha=2, ridge=0.1) for m in (given, model))
    assert found.test_error == pytest.approx(wanted.test_error, rel=1e-12)
    assert gs.SpikedRandomFeatures.from_json(given.to_json()) == given
    with pytest.raises(ParameterError, match="norm overlap or a stretch"):
        given.simulate(100, progress=False)
    with pytest.raises(ParameterError, match="norm overlap or a stretch"):
        given.with_loss("square")


# ---------------------------------------------------------------------- what is refused


def test_networks_are_drawn_where_the_law_says_how():
    frame = model_of("orthonormal")
    data = frame.simulate(120, alpha=[2.0], ridge=0.1, seeds=16, progress=False)
    theory = frame.solve(alpha=2, ridge=0.1, width=60)
    for name in ("test_error", "training_error"):
        mean, error = (float(data[f"{name}_{part}"][0]) for part in ("mean", "standard_error"))
        assert mean == pytest.approx(getattr(theory, name), abs=4 * error)


def from_eigenvalues(values, **given):
    return lambda: gs.BulkLaw.from_eigenvalues(values, **given)


def from_density(*given, **options):
    return lambda: gs.BulkLaw.from_density(*given, **options)


V, ZETA = np.eye(4)[:2]
WRONG = [
    (from_eigenvalues([]), "eigenvalues must hold at least one number"),
    (from_eigenvalues("two"), "eigenvalues must be a number or an array"),
    (from_eigenvalues([[1.0]]), "one-dimensional"),
    (from_eigenvalues([-0.1, 1.0]), "eigenvalues must be >= 0, got -0.1"),
    (from_eigenvalues([0.0, 0.0]), "must not all vanish"),
    (from_eigenvalues([1.0, math.nan]), "eigenvalues must be finite"),
    (from_eigenvalues([1, 2], weights=[0.5, 0.6]), "weights must sum to 1.*sum to 1.1"),
    (from_eigenvalues([1, 2], weights=[-0.5, 1.5]), "weights must be >= 0"),
    (from_eigenvalues([1, 2], weights=[1.0]), "weights must have one number for each of"),
    (from_eigenvalues([1, 2], F=[1.0]), "F must have one number for each of the 2"),
    (from_eigenvalues([1, 2], F=[1.0, -1.0]), "F must be >= 0"),
    (from_eigenvalues([1, 2], H=[1.0, 1.0]), "F must be given where G or H is"),
    (from_eigenvalues([1, 2], F=[1, 1], G=[3, 0]), r"G\*\*2 <= F\*H"),
    (from_eigenvalues([1, 2], penalty=[0.0, 1.0]), "penalty must be positive"),
    (from_eigenvalues([1, 2], penalty="l1"), "how the eigenvectors of the bulk lie to the"),
    (from_density("x", (0, 2)), "these sum to 2: divide x by 2"),
    (from_density("1", (0, 1), atoms={2: 0.5}), "these sum to 1.5: divide 1 by 2"),
    (from_density("1", (0, 1), atoms={2: 1.0}), "leave a share to the density"),
    (from_density("1", (0, 1), atoms={2: -1.0}), "atoms must be positive"),
    (from_density("x - 1", (0, 2)), "nonnegative"),
    (from_density("1/(x - 1/2)**2", (0, 1)), "are not at x = 0.5"),
    (from_density("1", (-1, 0)), "domain must increase from at least 0"),
    (from_density("1", (1, 0)), "domain must increase"),
    (from_density("1", (0,)), "domain must hold two ends"),
    (from_density("log(x - 1)", (0, 1)), "are not at x = "),
    (from_density("1", "01"), "domain must be a sequence"),
    (from_density("1", (0, 1), F="x - 1"), "F must be >= 0"),
    (from_density("no density", (0, 1)), "no density"),
    (from_density("1", (0, "x")), "x"),
    (lambda: gs.BulkLaw.from_matrix(np.ones(4), V, ZETA), "rows must be a matrix"),
    (lambda: gs.BulkLaw.from_matrix(np.ones((2, 4)), V, V), "spike @ teacher is off by"),
    (lambda: gs.BulkLaw.from_matrix(np.ones((2, 4)), 2 * V, ZETA), "spike @ spike is off"),
    (lambda: model_of(3), "BulkLaw.from_eigenvalues"),
    (lambda: model_of("wishart"), "bulk must be 'iid', 'orthonormal' or a BulkLaw, got 'wishart'"),
    (lambda: model_of("orthonormal", beta=1.5), "beta <= 1"),
    (lambda: model_of(two_levels(), variance=1.5), r"mean of the bulk law is 1, .*scaled\(1.5\)"),
    (lambda: model_of(two_levels(), beta=2.0), "at least 0.5 of the eigenvalues vanishes.*it is 0"),
    (lambda: model_of(two_levels(), stretch=(0.1, 0, 0)), "stretch is about independent rows"),
    (lambda: model_of("iid", stretch=(0.1, 0)), "stretch must hold three numbers"),
    (lambda: model_of("iid", norm_overlap=math.inf), "norm_overlap and stretch must be finite"),
    (lambda: gs.SpikedRandomFeatures("erf", "erf", step_size=1, bulk=two_levels()),
     "follows from the step"),
    (lambda: gs.VocabularyFeatures("erf", "erf", letters=[1.0], fractions=[1.0], bulk=two_levels()),
     "bulk must be one of iid, orthonormal"),
    (lambda: model_of(two_levels()).simulate(100, progress=False), "does not say how rows are dra"),
    *((lambda ask=ask: ask(model_of(two_levels(), student="erf")),
       "known for independent bulk rows only") for ask in (
        lambda m: m.bounds(), lambda m: m.asymptotics(), lambda m: m.realised_functions(),
        lambda m: m.expansion("large_alpha", ridge=0.1), lambda m: m.spectrum(alpha=2),
        lambda m: m.learned_bias(alpha=2, ridge=0.1),
        lambda m: m.at(spike_strength=0.0).as_gradient_step(alpha=2),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("ask", "message"), WRONG)
def test_what_is_no_law_and_what_is_not_known_of_others(ask, message):
    with pytest.raises((ParameterError, ExpressionError), match=message):
        ask()
