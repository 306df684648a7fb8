"""Make vectors.json: solutions of the mean-field models in 40 digits, independent of giantstep.

Run ``python tests/symbolic/lowering/make_vectors.py`` (three minutes). Every model is written down
here once more, from the papers, with mpmath alone: fixed points by Newton's method with numerical
derivatives, Gaussian averages by the trapezoidal rule (smooth integrands) or by Gauss–Legendre
rules between kinks, proximal points of the logistic loss by Newton's method. Each value is computed
with two rules and printed to the 25 digits in which they agree.
"""

import itertools
import json
from pathlib import Path

import mpmath
from mpmath import mp, mpf

mp.dps = 40
AGREEMENT = mpf(10) ** -29
ROWS = {
    "omega": ["0.05", "0.3", "0.8", "1.1", "2.5", "4"],
    "t": ["0.02", "0.5", "0.1", "1.2", "0.7", "6"],
}
MATCHED_ROWS = {
    "omega": ["0", "0.3", "0.8", "1.1", "2.5"],
    "theta_squared": ["2", "1.5", "0.1", "1.2", "0.7"],
    "weight": ["3", "1", "2", "1", "1"],
}


def normal(x):
    return mpmath.npdf(x)


def trapezoidal(f, step):
    reach = mpf(14)
    n = int(reach / step)
    return step * mpmath.fsum(f(k * step) * normal(k * step) for k in range(-n, n + 1))


def between(f, points, degree):
    edges = sorted([mpf(-14), *(p for p in points if -14 < p < 14), mpf(14)])
    pieces = []
    for a, b in itertools.pairwise(edges):
        count = int(mpmath.ceil(b - a))
        pieces += [(a + (b - a) * k / count, a + (b - a) * (k + 1) / count) for k in range(count)]
    return mpmath.fsum(
        mpmath.quad(lambda x: f(x) * normal(x), pair, method="gauss-legendre", maxdegree=degree)
        for pair in pieces
    )


def solved(update, start):
    """Solve log x = log update(x): a few damped moves, then Newton's method."""
    x = [mpmath.log(mpf(s)) for s in start]

    def residual(*logs):
        values = update(*(mpmath.exp(u) for u in logs))
        return [u - mpmath.log(v) for u, v in zip(logs, values, strict=True)]

    with mp.workdps(15):
        for _ in range(60):
            x = [u - r * mpf("0.7") for u, r in zip(x, residual(*x), strict=True)]
    n = len(x)
    for _ in range(12):
        here = mpmath.matrix(residual(*x))
        size = mpmath.norm(here)
        if size < mpf(10) ** -36:
            break
        h = mpf(10) ** -18
        jacobian = mpmath.matrix(n, n)
        for j in range(n):
            ahead = residual(*(u + h * (k == j) for k, u in enumerate(x)))
            for i in range(n):
                jacobian[i, j] = (ahead[i] - here[i]) / h
        x = [u - d for u, d in zip(x, mpmath.lu_solve(jacobian, here), strict=True)]
    return [mpmath.exp(u) for u in x]


def ridge_regression(alpha, ridge, signal_power, noise_variance):
    # Dobriban and Wager, arXiv 1507.03003, in the normalisation of the model: V is the trace of
    # (X'X/d + ridge)^-1 / d, the root of a quadratic equation.
    b = ridge + alpha - 1
    V = (-b + mpmath.sqrt(b * b + 4 * ridge)) / (2 * ridge)
    gain = alpha * V**2 / (1 + V) ** 2
    error = (signal_power * (ridge * V) ** 2 + gain * noise_variance) / (1 - gain)
    V_hat = alpha / (1 + V)
    m = signal_power * V_hat * V
    return {
        "test_error": error,
        "training_error": (error + noise_variance) / (1 + V) ** 2,
        "V": V,
        "V_hat": V_hat,
        "m": m,
        "q": error - signal_power + 2 * m,
    }


def gaussian_covariates(alpha, ridge, noise_variance, rows, signal_power=None):
    weights = [mpf(w) for w in rows.get("weight", [1] * len(rows["omega"]))]
    omega = [mpf(x) for x in rows["omega"]]
    if "t" in rows:
        t = [mpf(x) for x in rows["t"]]
    else:
        squares = [mpf(x) for x in rows["theta_squared"]]
        t = [w * w * s for w, s in zip(omega, squares, strict=True)]

    def mean(values):
        return mpmath.fsum(w * v for w, v in zip(weights, values, strict=True)) / mpmath.fsum(
            weights
        )

    if signal_power is None:
        signal_power = mean([w * s for w, s in zip(omega, squares, strict=True)])
    # Effective penalty kappa = ridge/V_hat: alpha - ridge/kappa = mean(omega/(omega + kappa)),
    # increasing minus decreasing in kappa, so that bisection on log kappa finds it.
    low, high = mpf(10) ** -9, mpf(10) ** 9
    for _ in range(200):
        kappa = mpmath.sqrt(low * high)
        above = alpha - ridge / kappa > mean([w / (w + kappa) for w in omega])
        low, high = (low, kappa) if above else (kappa, high)
    V_hat = ridge / kappa
    V = alpha / V_hat - 1
    m = mean([x / (kappa + w) for w, x in zip(omega, t, strict=True)])
    own = mean([w * x / (kappa + w) ** 2 for w, x in zip(omega, t, strict=True)])
    gain = mean([w * w / (kappa + w) ** 2 for w in omega]) / alpha
    total = (signal_power + noise_variance - 2 * m + own) / (1 - gain)
    return {
        "test_error": total - noise_variance,
        "training_error": total / (1 + V) ** 2,
        "V": V,
        "V_hat": V_hat,
        "m": m,
        "q": own + gain * total,
    }


def logistic_proximal(y, omega, V):
    x = omega
    for _ in range(200):
        s = 1 / (1 + mpmath.exp(y * x))
        step = (x - omega - V * y * s) / (1 + V * s * (1 - s))
        x -= step
        if abs(step) < mpf(10) ** -(mp.dps // 2 + 2) * (1 + abs(x)):
            s = 1 / (1 + mpmath.exp(y * x))
            return x - (x - omega - V * y * s) / (1 + V * s * (1 - s))
    raise ArithmeticError("no proximal point")


def margin_classifier(kind, alpha, ridge, signal_power, noise_variance, fine):
    """Solve the fixed-point equations with both labels, in V, q, m and their conjugates."""

    def point(y, omega, V):
        """Proximal point, and its derivative by omega."""
        if kind == "logistic":
            x = logistic_proximal(y, omega, V)
            s = 1 / (1 + mpmath.exp(y * x))
            return x, 1 / (1 + V * s * (1 - s))
        if kind == "square":
            return (omega + V * y) / (1 + V), 1 / (1 + V)
        if y * omega < 1 - V:
            return omega + V * y, mpf(1)
        return (mpf(y), mpf(0)) if y * omega < 1 else (omega, mpf(1))

    def loss(u):
        if kind == "logistic":
            return mpmath.log1p(mpmath.exp(-u))
        return (1 - u) ** 2 / 2 if kind == "square" else max(mpf(0), 1 - u)

    def averages(V, q, m):
        if kind == "hinge":
            root = mpmath.sqrt(q)
            points = [s * x / root for s in (1, -1) for x in (1, 1 - V)]
        else:
            points = None

        def total(f):
            if points is None:
                return trapezoidal(f, mpf(1) / (24 + 12 * fine))
            return between(f, points, 4 + fine)

        b = mpmath.sqrt(signal_power + noise_variance - m**2 / q)
        a = m / mpmath.sqrt(q) / b

        def integrands(z):
            found = [mpf(0)] * 4
            for y in (1, -1):
                omega = mpmath.sqrt(q) * z
                x, slope = point(y, omega, V)
                f, df = (x - omega) / V, (slope - 1) / V
                Z, dZ = mpmath.ncdf(y * a * z), y * normal(a * z) / b
                terms = (-Z * df, Z * f**2, dZ * f, Z * loss(y * x))
                found = [u + v for u, v in zip(found, terms, strict=True)]
            return found

        memory = {}

        def column(k):
            def f(z):
                if z not in memory:
                    memory[z] = integrands(z)
                return memory[z][k]

            return total(f)

        return [column(k) for k in range(4)]

    def update(V_hat, q_hat, m_hat):
        V = 1 / (ridge + V_hat)
        q, m = (signal_power * m_hat**2 + q_hat) * V**2, signal_power * m_hat * V
        return [alpha * x for x in averages(V, q, m)[:3]]

    V_hat, q_hat, m_hat = solved(update, (1, 1, 1))
    V = 1 / (ridge + V_hat)
    q, m = (signal_power * m_hat**2 + q_hat) * V**2, signal_power * m_hat * V
    cosine = m / mpmath.sqrt((signal_power + noise_variance) * q)
    return {
        "generalisation_error": mpmath.acos(cosine) / mpmath.pi,
        "training_loss": averages(V, q, m)[3],
        **{"V": V, "q": q, "m": m, "V_hat": V_hat, "q_hat": q_hat, "m_hat": m_hat},
    }


def sherrington_kirkpatrick(beta, h, fine):
    step = mpf(1) / (24 + 12 * fine)

    def field(q, z):
        return beta * (mpmath.sqrt(q) * z + h)

    q = mpf(0)
    if h != 0 or beta > 1:

        def update(q):
            return [trapezoidal(lambda z: mpmath.tanh(field(q, z)) ** 2, step)]

        (q,) = solved(update, (1,))
    m = trapezoidal(lambda z: mpmath.tanh(field(q, z)), step)
    entropy_part = trapezoidal(lambda z: mpmath.log(2 * mpmath.cosh(field(q, z))), step)
    free_energy = -beta * (1 - q) ** 2 / 4 - entropy_part / beta
    energy = -beta * (1 - q**2) / 2 - h * m
    sech4 = trapezoidal(lambda z: mpmath.sech(field(q, z)) ** 4, step)
    return {
        "q": q,
        "magnetisation": m,
        "free_energy": free_energy,
        "entropy": beta * (energy - free_energy),
        "stability": 1 - beta**2 * sech4,
    }


def _regression(*values):
    return dict(zip(("alpha", "ridge", "signal_power", "noise_variance"), values, strict=True))


CASES = [
    ("ridge, many samples", "ridge_regression", _regression("2", "0.1", "1", "0.25")),
    ("ridge, nearly interpolating", "ridge_regression", _regression("0.5", "1e-6", "1.5", "0")),
    ("ridge, at the threshold", "ridge_regression", _regression("1", "0.01", "1", "0.1")),
    ("covariates", "gaussian_covariates", _regression("0.7", "0.05", "5", "0.1")),
    ("covariates, many samples", "gaussian_covariates", _regression("6", "1e-3", "5", "0")),
    ("covariates, matched", "matched_covariates",
     {"alpha": "0.7", "ridge": "0.05", "noise_variance": "0.1"}),
    ("logistic", "logistic", _regression("2", "0.1", "1", "0")),
    ("logistic, noisy labels", "logistic", _regression("5", "0.01", "1", "0.5")),
    ("hinge", "hinge", _regression("2", "0.1", "1", "0.25")),
    ("square", "square", _regression("3", "0.5", "2", "0.1")),
    ("SK, paramagnet", "sherrington_kirkpatrick", {"beta": "0.5", "h": "0.2"}),
    ("SK, paramagnet without a field", "sherrington_kirkpatrick", {"beta": "0.5", "h": "0"}),
    ("SK, glass", "sherrington_kirkpatrick", {"beta": "2", "h": "0"}),
    ("SK, in a field", "sherrington_kirkpatrick", {"beta": "1.5", "h": "-0.3"}),
]  # fmt: skip


def solve(kind, parameters, fine):
    numbers = {name: mpf(text) for name, text in parameters.items()}
    if kind == "ridge_regression":
        return ridge_regression(**numbers)
    if kind == "gaussian_covariates":
        return gaussian_covariates(**numbers, rows=ROWS)
    if kind == "matched_covariates":
        return gaussian_covariates(**numbers, rows=MATCHED_ROWS)
    if kind == "sherrington_kirkpatrick":
        return sherrington_kirkpatrick(**numbers, fine=fine)
    return margin_classifier(kind, **numbers, fine=fine)


def main():
    vectors = []
    for name, kind, parameters in CASES:
        coarse, fine = (solve(kind, parameters, level) for level in (0, 1))
        for key, value in fine.items():
            assert abs(coarse[key] - value) <= AGREEMENT * (abs(value) or 1), (name, key)
        data = {"gaussian_covariates": ROWS, "matched_covariates": MATCHED_ROWS}.get(kind)
        expected = {key: mpmath.nstr(value, 25) for key, value in fine.items()}
        vectors.append(
            {"name": name, "system": kind, "parameters": parameters, "data": data}
            | {"expected": expected}
        )
        print(name, expected, flush=True)
    document = {
        "provenance": f"tests/symbolic/lowering/make_vectors.py, mpmath {mpmath.__version__}",
        "vectors": vectors,
    }
    text = json.dumps(document, indent=1) + "\n"
    Path(__file__).with_name("vectors.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
