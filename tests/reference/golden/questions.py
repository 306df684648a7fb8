"""Which questions `record.py` asks: points drawn with fixed seeds, within and at edges of domains.

Only recording reads this: what was asked stands in the files, beside the answers.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

SEED = 16
Record = dict[str, Any]

# Which run asks a record: each run of the tests, those of slow tests, or `record.py --compare`.
ALWAYS, SLOW, BY_HAND = "always", "slow", "by hand"
_STATED = (
    "last bits depend on what numba compiles (up to 2e-14); where an answer states a larger error, "
    "that error. Exact results are compared by value."
)
_EXACT = "exact results are compared by value, not by spelling: 27 digits at one point"


@dataclass(frozen=True)
class Plan:
    """A file: what it holds, why its tolerance is what it is, and its questions."""

    what: str
    records: Callable[[], Iterator[Record]]
    tolerance: str = _STATED


PLANS: dict[str, Plan] = {}


def _plan(what: str, tolerance: str = _STATED) -> Callable[[Any], Any]:
    def keep(function: Callable[[], Iterator[Record]]) -> Callable[[], Iterator[Record]]:
        PLANS[function.__name__] = Plan(what, function, tolerance)
        return function

    return keep


class _Draw(random.Random):
    """Random numbers with few digits, so that files stay readable."""

    def uniform(self, a: float, b: float) -> float:
        return float(f"{super().uniform(a, b):.4g}")

    def log(self, a: float, b: float) -> float:
        """Return a number whose logarithm is uniform."""
        import math

        return float(f"{math.exp(super().uniform(math.log(a), math.log(b))):.4g}")


def _asked(ask: str, model: Record | None = None, run: str = SLOW, **at: Any) -> Record:
    found: Record = {"ask": ask}
    if run != SLOW:
        found["run"] = run
    if model is not None:
        found["model"] = model
    return {**found, "at": at}


# ---------------------------------------------------------------------- spiked random features

# Always: pairs whose kernels the other tests compile as well.
_SPIKED = (
    ("tanh", "sin", ALWAYS), ("erf", "erf", ALWAYS), ("sin", "tanh", SLOW),
    ("tanh(2*z) + z/4", "z + He(3, z)/6", SLOW), ("relu", "sin", SLOW),
    ("sign", "erf(z) + z**3/10", SLOW),
)  # fmt: skip


def _step(d: _Draw, student: str, teacher: str) -> Record:
    return {
        "is": "SpikedRandomFeatures", "student": student, "teacher": teacher,
        "step_size": d.log(0.3, 8), "alpha0": d.choice([d.log(1, 50), "inf"]),
        "beta": d.log(0.1, 8), "noise_variance": d.choice([0.0, d.log(0.01, 2)]),
    }  # fmt: skip


def _given(d: _Draw, student: str, teacher: str, **fixed: float) -> Record:
    return {
        "is": "SpikedRandomFeatures.from_parameters", "student": student, "teacher": teacher,
        "spike_strength": d.uniform(-3, 3), "bulk_variance": d.log(0.2, 6),
        "alignment": d.uniform(-0.99, 0.99), "beta": d.log(0.1, 8),
        "noise_variance": d.choice([0.0, d.log(0.01, 2)]), **fixed,
    }  # fmt: skip


@_plan(
    "spiked random features, after a step and by (r, c, γ): spikes, errors, order parameters and "
    "conjugates; 20 points to 30 digits; penalties from 1e-10 to 1e6, α = β, γ near 1, c from .01 "
    "to 50, widths, no spike, refused points"
)
def spiked() -> Iterator[Record]:
    d = _Draw(f"{SEED} spiked")
    for student, teacher, run in _SPIKED:
        odd = student not in ("relu", "sign")
        for k in range(26):
            model = (_step if odd and k % 2 else _given)(d, student, teacher)
            often = run if k % 9 == 1 else SLOW
            if odd and k % 4 == 1:
                yield _asked("spiked_model", model, often)
            yield _asked("spiked_solve", model, often, alpha=d.log(0.05, 20), ridge=d.log(1e-4, 10))
        edges: list[tuple[Record, Record]] = [
            ({}, {"ridge": 1e-10}), ({}, {"ridge": 1e6}), ({"beta": 1.5}, {"alpha": 1.5}),
            ({"alignment": 0.999999}, {}), ({"bulk_variance": 0.01}, {}),
            ({"bulk_variance": 50.0}, {}), ({"spike_strength": 1e-3}, {}),
        ]  # fmt: skip
        for fixed, at in edges:
            point = {"alpha": d.log(0.1, 10), "ridge": d.log(1e-3, 1), **at}
            yield _asked("spiked_solve", _given(d, student, teacher, **fixed), **point)
    for student, teacher, _ in _SPIKED[:2]:
        for fixed in ({"spike_strength": 0.0}, {"alignment": 1.0}, {"alignment": -1.0}):
            yield _asked(
                "spiked_solve", _given(d, student, teacher, **fixed), BY_HAND,
                alpha=d.log(0.1, 10), ridge=d.log(1e-3, 1),
            )  # fmt: skip
    for width in (50, 1000):
        model = _given(d, "tanh", "sin")
        yield _asked("spiked_solve", model, BY_HAND, alpha=1.3, ridge=0.1, width=width)
    model = {**_step(d, "tanh", "sin"), "correlated_norms": True}
    yield _asked("spiked_model", model, BY_HAND)
    yield _asked("spiked_solve", model, BY_HAND, alpha=2.0, ridge=0.1)
    for k in range(20):
        student, teacher, _ = _SPIKED[k % 6]
        yield _asked(
            "spiked_solve", _given(d, student, teacher), SLOW if k in (1, 7) else BY_HAND,
            alpha=d.log(0.1, 10), ridge=d.log(1e-4, 1), digits=30,
        )  # fmt: skip
    refused: list[tuple[Record, Record]] = [
        ({"is": "SpikedRandomFeatures", "student": "relu", "teacher": "sin"}, {}),
        ({"is": "SpikedRandomFeatures", "student": "tanh", "teacher": "sin", "alpha0": 0.0}, {}),
        ({"is": "SpikedRandomFeatures", "student": "tanh", "teacher": "gibberish(z)"}, {}),
        (_given(d, "tanh", "sin", alignment=1.5), {}), (_given(d, "tanh", "sin", beta=-1.0), {}),
        (_given(d, "tanh", "sin", bulk_variance=0.0), {}),
        (_given(d, "tanh", "sin"), {"alpha": 0.0}), (_given(d, "tanh", "sin"), {"ridge": -1.0}),
        (_given(d, "tanh", "sin"), {"ridge": 0.0}), (_given(d, "tanh", "sin"), {"digits": 0}),
    ]  # fmt: skip
    for model, at in refused:
        yield _asked("spiked_solve", model, ALWAYS, **{"alpha": 1.0, "ridge": 0.1, **at})


@_plan(
    "points that defects known today touch: students that oscillate, students that are not odd "
    "after a step. These change when those are mended; nothing else should"
)
def being_mended() -> Iterator[Record]:
    d = _Draw(f"{SEED} mended")
    for student, teacher in (("sin(25*z) + z", "erf"), ("z + sin(25*z)/4", "erf")):
        for _ in range(4):
            yield _asked(
                "spiked_solve", _given(d, student, teacher), BY_HAND,
                alpha=d.log(0.1, 10), ridge=d.log(1e-2, 1),
            )  # fmt: skip
    yield _asked(
        "spiked_solve",
        _given(d, "sin(25*z) + z", "erf", spike_strength=1.0, bulk_variance=1.0, alignment=0.9,
               beta=1.0, noise_variance=0.0, width=100),
        BY_HAND, alpha=1.5, ridge=0.1,
    )  # fmt: skip
    for student, teacher in (("relu", "relu"), ("relu", "sin"), ("gelu", "z**2 + z")):
        for alpha0 in ("inf", 8.0):
            model = {**_step(d, student, teacher), "allow_non_odd": True, "alpha0": alpha0}
            yield _asked("spiked_model", model, BY_HAND)
            for _ in range(2):
                yield _asked(
                    "spiked_solve", model, BY_HAND, alpha=d.log(0.1, 10), ridge=d.log(1e-2, 1)
                )
    model = {"is": "VocabularyFeatures", "student": "relu", "teacher": "relu",
             "letters": [1.0, -0.5], "fractions": [0.5, 0.5], "allow_non_odd": True}  # fmt: skip
    yield _asked("vocabulary_solve", {**model, "step_size": 2.0, "alpha0": 8.0}, BY_HAND,
                 alpha=1.5, ridge=0.1)  # fmt: skip
    for integrand in ("exp(u + 1)*max(v, 0)", "exp(u + 1)*tanh(v)**2", "exp(u - 1)*abs(v)"):
        yield _asked("expect", None, BY_HAND, integrand=integrand, joint="0")
    for f in ("max(-1, min(1, z))", "relu(z + 1) - relu(z - 1) - 1"):
        yield _asked("hermite_coefficients", None, BY_HAND, f=f, order=5)
        yield _asked("expect", None, BY_HAND, integrand=f"({f})**2")
    for target in ("x1 + a*x1*x2", "a*x1 + x1*x2*x3"):
        yield _asked("staircase", None, BY_HAND, target=target, symbolic=True)
    for student, teacher in (("relu", "sign"), ("tanh", "sign"), ("erf", "z + He(3, z)/6")):
        model = {"is": "OneGradientStep", "student": student, "teacher": teacher, "alpha": 2.0,
                 "centre": True}  # fmt: skip
        yield _asked("one_step_equivalence", model, BY_HAND)
        yield _asked("one_step_risk", model, BY_HAND, ridge=0.1)


# ---------------------------------------------------------------------- convex losses

_CONVEX = (
    ("square", "teacher", "tanh", "sin"), ("huber(0.5)", "teacher", "tanh", "sin"),
    ("absolute", "teacher", "erf", "erf"), ("logistic", "sign", "tanh", "sin"),
    ("hinge", "probit", "erf", "erf"), ("(y - x)**2/2 + (y - x)**4/20", "teacher", "tanh", "sin"),
)  # fmt: skip


@_plan(
    "convex readouts of each loss (square, Huber, absolute, logistic, hinge, a text) with labels "
    "of the channels teacher, sign, probit: errors, losses, metrics, order parameters"
)
def convex() -> Iterator[Record]:
    d = _Draw(f"{SEED} convex")
    for loss, labels, student, teacher in _CONVEX:
        for k in range(32):
            name = loss
            if loss.startswith("huber"):
                name = f"huber({d.log(0.1, 3)})"
            features = _given(d, student, teacher)
            features |= {"spike_strength": abs(features["spike_strength"]) + 0.1,
                         "noise_variance": d.log(0.05, 1)}  # fmt: skip
            if labels == "sign":
                features["noise_variance"] = 0.0
            model = {"is": "ConvexReadout", "features": features, "loss": name, "labels": labels}
            at = {"alpha": d.log(0.2, 6), "ridge": d.log(1e-2, 2)}
            if k == 30:
                at["ridge"] = 1e-5
            if k == 31:
                at["ridge"] = 1e4
            yield _asked("convex_solve", model, BY_HAND, **at)
    d = _Draw(f"{SEED} convex digits")
    for k in range(10):
        features = _given(d, "tanh", "sin", noise_variance=0.25)
        model = {"is": "ConvexReadout", "features": features,
                 "loss": "square" if k < 6 else "huber(0.5)"}  # fmt: skip
        yield _asked("convex_solve", model, BY_HAND, alpha=d.log(0.3, 4), ridge=d.log(0.01, 1),
                     digits=30 if k < 6 else 15)  # fmt: skip
    features = _given(d, "tanh", "sin", noise_variance=0.25)
    for loss in ("hinge", "-(y - x)**2", "huber(-1)", "nothing"):
        model = {"is": "ConvexReadout", "features": features, "loss": loss}
        yield _asked("convex_solve", model, SLOW, alpha=1.0, ridge=0.1)


# ---------------------------------------------------------------------- vocabularies


@_plan(
    "vocabularies of one to four letters, after a step and given directly, with biases and widths: "
    "classes of rows, errors and order parameters"
)
def vocabulary() -> Iterator[Record]:
    d = _Draw(f"{SEED} vocabulary")
    for student, teacher in (("tanh", "sin"), ("erf", "erf"), ("sin", "tanh")):
        for k in range(60):
            n = d.choice([1, 2, 2, 3]) if k < 56 else 4
            shares = [d.uniform(0.2, 1) for _ in range(n)]
            fractions = [round(s / sum(shares), 4) for s in shares]
            fractions[-1] = round(1 - sum(fractions[:-1]), 4)
            model: Record = {
                "is": "VocabularyFeatures", "student": student, "teacher": teacher,
                "letters": [d.uniform(-1.5, 1.5) for _ in range(n)], "fractions": fractions,
                "step_size": d.log(0.5, 4), "alpha0": d.log(2, 30), "beta": d.log(0.3, 3),
                "noise_variance": d.choice([0.0, d.log(0.01, 1)]),
            }  # fmt: skip
            if k % 3 == 0:
                model["width"] = d.choice([100, 600, 3000])
            if k % 5 == 2:
                model["biases"] = [d.uniform(-1, 1) for _ in range(n)]
            at = {"alpha": d.log(0.2, 5), "ridge": d.log(1e-3, 1)}
            if k % 15 == 7:
                at["ridge"] = d.choice([1e-7, 1e4])
            run = ALWAYS if student == "tanh" and k in (3, 9) else BY_HAND
            if run == BY_HAND and k % 6 == 0:
                run = SLOW
            if k % 6 == 1:
                yield _asked("vocabulary_classes", model, run)
            yield _asked("vocabulary_solve", model, run, **at)
    for k in range(20):
        n = 1 + k % 3
        model = {
            "is": "VocabularyFeatures.from_parameters", "student": "tanh", "teacher": "sin",
            "spike_strengths": [d.uniform(-2, 2) for _ in range(n)],
            "bulk_variances": [d.log(0.5, 3) for _ in range(n)],
            "fractions": [round(1 / n, 3)] * (n - 1) + [round(1 - (n - 1) * round(1 / n, 3), 3)],
            "alignment": d.uniform(0, 0.99), "beta": d.log(0.3, 3),
        }  # fmt: skip
        yield _asked("vocabulary_solve", model, SLOW if k < 3 else BY_HAND,
                     alpha=d.log(0.2, 5), ridge=d.log(1e-3, 1))  # fmt: skip
    wrong: tuple[dict[str, list[float]], ...] = (
        {"letters": [1.0], "fractions": [0.5]}, {"letters": [], "fractions": []},
        {"letters": [1.0, 2.0], "fractions": [1.5, -0.5]},
    )  # fmt: skip
    for fixed in wrong:
        model = {"is": "VocabularyFeatures", "student": "tanh", "teacher": "sin", **fixed}
        yield _asked("vocabulary_solve", model, SLOW, alpha=1.0, ridge=0.1)


# ---------------------------------------------------------------------- one step of order one

_ONE_STEP = (
    ("erf", "erf", False), ("tanh", "tanh", False), ("tanh", "relu", True),
    ("relu", "erf", True), ("sin", "z + He(3, z)/6", False),
)  # fmt: skip


@_plan(
    "one gradient step of order one: risks before and after, first layer, conjugate kernel, best "
    "penalties, limits, several steps; 20 risks to 30 digits; n = N, penalties 1e-10 to 1e8"
)
def one_step() -> Iterator[Record]:
    d = _Draw(f"{SEED} one step")

    def drawn(student: str, teacher: str, centre: bool, /, **fixed: Any) -> Record:
        model = {
            "is": "OneGradientStep", "student": student, "teacher": teacher,
            "alpha": d.log(0.3, 8), "beta": d.log(0.2, 4), "step_size": d.log(0.1, 10),
            "noise_variance": d.choice([0.0, d.log(0.01, 1)]), "centre": centre,
        }  # fmt: skip
        if d.random() < 0.3:
            model["loss"] = "full"
        if d.random() < 0.2:
            model["alpha0"] = d.log(0.5, 20)
        return {**model, **fixed}

    for j, (student, teacher, centre) in enumerate(_ONE_STEP):
        for k in range(32):
            fixed: Record = {}
            if k == 0:
                fixed = {"alpha": 1.5, "beta": 1.5}
            if k == 1:
                fixed = {"step_size": 0.0}
            model = drawn(student, teacher, centre, **fixed)
            at = {"ridge": d.log(1e-4, 10)}
            if k in (2, 3):
                at = {"ridge": (1e-10, 1e8)[k - 2]}
            if k % 4 == 0:
                at = {"paper_ridge": d.log(1e-3, 3)}
            run = ALWAYS if k % 8 == 4 else SLOW
            yield _asked("one_step_risk", model, run, **at)
            if k % 4 == 1:
                yield _asked("one_step_weights", model, run)
            if k % 8 == 2:
                yield _asked("one_step_kernel", model, at=[0.1, 0.7, 1.5, 4.0])
                yield _asked("one_step_limits", model, ridge=d.log(1e-2, 1))
            if k % 8 == 5:
                yield _asked("one_step_optimal_ridge", model, trained=bool(k % 16 == 5))
                yield _asked("one_step_ridgeless", model)
            if k % 8 == 6:
                yield _asked("one_step_several", model, steps=3, fresh=bool(j % 2), ridge=0.1)
                yield _asked("one_step_peak", model, ridge=d.log(1e-6, 1e-2))
        yield _asked("one_step_equivalence", drawn(student, teacher, centre))
        yield _asked("one_step_equivalence", drawn(student, teacher, centre), step_exponent=0.3)
        yield _asked("large_step_limit", None, SLOW if j < 2 else BY_HAND,
                     student=student, teacher=teacher, centre=centre)  # fmt: skip
        for _ in range(4):
            model = drawn(student, teacher, centre)
            yield _asked("one_step_risk", model, ridge=d.log(1e-3, 1), digits=30)
        model = drawn(student, teacher, centre)
        yield _asked("one_step_weights", model, digits=30)
        yield _asked("one_step_kernel", model, digits=30)
        yield _asked("one_step_optimal_ridge", model, digits=30)
    for fixed in ({"alpha": 0.0}, {"beta": -1.0}, {"student": "sign"}, {"loss": "none"},
                  {"student": "relu", "centre": False}, {"noise_variance": -1.0}):  # fmt: skip
        yield _asked("one_step_risk", drawn("erf", "erf", False, **fixed), ridge=0.1)
    yield _asked("one_step_risk", drawn("erf", "erf", False), ridge=0.0)
    yield _asked("one_step_risk", drawn("erf", "erf", False), ridge=-1.0)


# ---------------------------------------------------------------------- systems of equations


def _systems() -> dict[str, Record]:
    return {
        "ridge regression": {"is": "system", "name": "ridge_regression"},
        "Gaussian covariates": {"is": "system", "name": "gaussian_covariates"},
        "logistic": {"is": "system", "name": "margin_classifier", "loss": "logistic"},
        "hinge": {"is": "system", "name": "margin_classifier", "loss": "hinge"},
        "spin glass": {"is": "system", "name": "sherrington_kirkpatrick"},
    }


def _point(d: _Draw, name: str) -> Record:
    if name == "spin glass":
        return {"beta": d.log(0.1, 5), "h": d.choice([0.0, d.uniform(-2, 2)])}
    point: Record = {
        "alpha": d.log(0.2, 10), "ridge": d.log(1e-3, 10), "signal_power": d.log(0.2, 4),
        "noise_variance": d.choice([0.0, d.log(0.01, 2)]),
    }  # fmt: skip
    if name == "Gaussian covariates":
        omega = [d.log(0.05, 4) for _ in range(4)]
        point["signal_power"] = 1.0
        point["data"] = {"spectrum": {"omega": omega, "t": [d.log(0.05, 2) for _ in range(4)]}}
    return point


@_plan(
    "ridge regression, Gaussian covariates, margin classifiers and the spin glass: all outputs and "
    "unknowns; four points of each to 30 digits; tiny and huge penalties, n = d, no signal noise"
)
def mean_field() -> Iterator[Record]:
    d = _Draw(f"{SEED} mean field")
    for name, model in _systems().items():
        heavy = name in ("logistic", "hinge")
        for k in range(40):
            point = _point(d, name)
            if "ridge" in point and k in (3, 4, 5):
                point |= ({"ridge": 1e-8}, {"ridge": 1e6}, {"alpha": 1.0})[k - 3]
            run = ALWAYS if not heavy and k % 13 == 1 else SLOW
            yield _asked("system_solve", model, BY_HAND if name == "logistic" else run, **point)
        for _ in range(4):
            yield _asked("system_solve", model, BY_HAND if heavy else SLOW,
                         **_point(d, name), digits=30)  # fmt: skip
        point = _point(d, name)
        for bad in ({next(iter(point)): -1.0}, {next(iter(point)): "a lot"}, {"missing": 1.0}):
            yield _asked("system_solve", model, **{**point, **bad})


_USERS: dict[str, Record] = {
    "planted_spins": {
        "symbols": {"snr": "positive", "m": "positive", "q": "positive"},
        "parameters": ["snr"], "unknowns": ["m", "q"],
        "free_energy":
            "E(log(cosh(sqrt(snr*q)*z + snr*m))) + snr*(q**2/4 - q/2 - m**2/2)",
    },
    "curie_weiss": {
        "symbols": {"beta": "positive", "h": "real", "m": "real"}, "parameters": ["beta", "h"],
        "equations": {"m": "E(tanh(beta*(m + h) + z/3))"}, "start": {"m": "1/2"},
        "outputs": {"square": "m**2", "chi": "E(1 - tanh(beta*(m + h) + z/3)**2)"},
    },
    "two_layers": {
        "symbols": {"a": "positive", "b": "positive", "q": "positive", "v": "positive"},
        "parameters": ["a", "b"],
        "equations": {
            "v": "1/(b + a/(1 + v))", "q": "1/2 + a*v**2*E(tanh(sqrt(q)*z + b)**2)/(1 + v)**2"
        },
        "outputs": {"loss": "E(Max(0, 1 - sqrt(q)*z)**2)/(1 + v)"},
    },
}  # fmt: skip


@_plan(
    "systems of users by gs.lower, from a free energy and from fixed points, written as texts: all "
    "outputs and unknowns; 20 points to 30 digits"
)
def user_systems() -> Iterator[Record]:
    d = _Draw(f"{SEED} users")
    for name, written in _USERS.items():
        model = {"is": "system", "name": name, **written}

        def point(k: int, name: str = name) -> Record:
            if name == "planted_spins":
                return {"snr": (1.02, 30.0)[k] if k < 2 else d.log(1.05, 10)}
            if name == "curie_weiss":
                return {"beta": d.log(0.2, 4), "h": (0.0, 3.0)[k] if k < 2 else d.uniform(-1, 2)}
            return {"a": (1e-6, 1e4)[k] if k < 2 else d.log(0.1, 5), "b": d.log(0.1, 5)}

        for k in range(66):
            yield _asked("system_solve", model, ALWAYS if k % 20 == 2 else SLOW, **point(k))
        for k in range(7):
            yield _asked("system_solve", model, SLOW if k < 3 else BY_HAND,
                         **point(2 + k), digits=30)  # fmt: skip


_LANGUAGES = ("numba", "python", "numpy", "c", "mpmath", "julia")


@_plan(
    "answers of the files that are written for other languages: ten points from each file (numba, "
    "Python, NumPy, C, mpmath to 20 digits); Julia: that a file is written and its syntax right"
)
def kernel_files() -> Iterator[Record]:
    d = _Draw(f"{SEED} kernel files")
    spiked: Record = {
        "is": "SpikedRandomFeatures.from_parameters", "student": "tanh", "teacher": "sin",
        "spike_strength": 1.1, "bulk_variance": 1.2, "alignment": 0.9, "beta": 1.0,
    }  # fmt: skip
    cases: list[tuple[Record, Callable[[], Record]]] = [
        ({"is": "system", "name": "sherrington_kirkpatrick"}, lambda: _point(d, "spin glass")),
        ({"is": "system", "name": "ridge_regression"}, lambda: _point(d, "ridge regression")),
        ({"is": "system", "name": "two_layers", **_USERS["two_layers"]},
         lambda: {"a": d.log(0.1, 5), "b": d.log(0.1, 5)}),
        (spiked, lambda: {"alpha": d.log(0.2, 6), "ridge": d.log(1e-2, 1)}),
        ({"is": "OneGradientStep", "student": "erf", "teacher": "erf", "alpha": 2.0, "beta": 1.5,
          "step_size": 4.0, "noise_variance": 0.25}, lambda: {"ridge": d.log(1e-3, 3)}),
    ]  # fmt: skip
    for j, (model, point) in enumerate(cases):
        points = [point() for _ in range(10)]
        for target in _LANGUAGES:
            few = points[:2] if target == "mpmath" else points
            quick = target in ("numpy", "c") and j == 0
            slow = target != "numba" and (target != "python" or j < 3) and j < 3
            yield _asked("kernel_file", model, ALWAYS if quick else SLOW if slow else BY_HAND,
                         target=target, points=few)  # fmt: skip


# ---------------------------------------------------------------------- exact results

_FUNCTIONS = (
    "z", "z**2", "z**3", "erf(z)", "relu(z)", "abs(z)", "sin(z)", "cos(z)", "exp(z/2)", "sign(z)",
    "Heaviside(z)", "He(3, z)", "He(4, z)/2", "gelu(z)", "z*erf(z)", "sin(2*z)", "cos(z)**2",
    "erf(2*z)", "relu(z - 1)", "relu(z)**2", "abs(z - 1)", "exp(-z**2/2)", "z*exp(z/3)",
    "sinh(z/2)", "cosh(z/2)", "sign(z - 1)", "relu(2*z + 1)", "z**2*sign(z)",
)  # fmt: skip


@_plan(
    "300 closed forms: Gaussian means of one variable and of pairs, dual activations, Hermite "
    "coefficients, information exponents, conditional means",
    _EXACT,
)
def closed_forms() -> Iterator[Record]:
    d = _Draw(f"{SEED} closed forms")

    def asked(k: int, ask: str, **at: Any) -> Record:
        return _asked(ask, None, ALWAYS if k % 10 == 0 else SLOW, **at)

    done: set[str] = set()
    count = 0

    def new(text: str) -> bool:
        found = text not in done
        done.add(text)
        return found

    while count < 90:
        f, g = (d.choice(_FUNCTIONS) for _ in range(2))
        shift, factor = d.choice(["z", "2*z + 1", "z/2 - 1", "a*z", "a*z + b"]), d.randint(1, 5)
        text = d.choice([f"({f})*({g})", f"{factor}*({f})**2", f"({f}) + {factor}*({g})**2"])
        text = text.replace("exp(", "EXP(").replace("z", f"({shift})").replace("EXP(", "exp(")
        if not new(text):
            continue
        at: Record = {"integrand": text}
        if "a*" in shift:
            at["parameters"] = {"a": "positive"} | ({"b": "real"} if "b" in shift else {})
        yield asked(count, "expect", **at)
        count += 1
    pairs = ("erf(#)", "relu(#)", "sign(#)", "sin(#)", "abs(#)", "#**2", "#", "cos(2*#)",
             "exp(#/3)", "#**3", "Heaviside(#)", "erf(2*#)", "He(2, #)", "relu(# - 1)")  # fmt: skip
    count = 0
    while count < 80:
        f, g = (d.choice(pairs) for _ in range(2))
        joint = d.choice(["rho", "1/2", "-1/3", "0", "rho"])
        text = f"{f.replace('#', 'u')}*{g.replace('#', 'v')}"
        scaled = joint != "rho" and d.random() < 0.4
        if not new(f"{text} {joint} {scaled}"):
            continue
        at = {"integrand": text, "joint": joint}
        if joint == "rho":
            at["parameters"] = {"rho": "real"}
        if scaled:
            at |= {"variances": ["2", "3"], "means": d.choice([["0", "0"], ["0", "1"]])}
        yield asked(count, "expect", **at)
        count += 1
    duals = ("erf", "relu", "sign", "sin", "abs", "gelu", "z**3", "cos", "He(3, z)", "exp(z/2)",
             "sin(2*z)", "erf(3*z)", "Heaviside(z)", "tanh", "relu(z - 1)")  # fmt: skip
    for k, f in enumerate(duals):
        yield asked(k, "dual_activation", f=f)
    for k in range(15):
        f, g = d.sample(duals, 2)
        yield asked(k + 1, "dual_activation", f=f, g=g)
    names = ("tanh", "erf", "sin", "relu", "gelu", "softplus", "sigmoid", "abs", "sign", "cos",
             "z**5 - 2*z", "tanh(2*z) + z/4", "He(3, z)/6", "exp(z)", "z*erf(z)", "relu(z - 1) + z",
             "swish", "atan", "exp(-z**2)", "z**2*exp(-z**2)", "relu(z)**2",
             "max(z, -1)")  # fmt: skip
    for k, f in enumerate(names):
        yield asked(k, "hermite_coefficients", f=f, order=d.randint(4, 8))
        yield asked(k + 5, "information_exponent", f=f)
    for k, f in enumerate(_FUNCTIONS):
        yield asked(k, "hermite_coefficients", f=f, order=4)
    for k, f in enumerate(("erf", "relu", "sin", "cos", "abs", "gelu", "sign", "z**3", "He(2, z)")):
        yield asked(k + 3, "conditional_equivalence", student=f)
    for k, (f, g) in enumerate((("erf", "x1"), ("relu", "x1**2 + x1"), ("sin", "erf(x1)"),
                                ("tanh", "x1*x2"), ("relu", "relu(x1)"))):  # fmt: skip
        yield asked(k + 3, "first_step", student=f, target=g)
    for k in range(2, 6):
        yield asked(k, "correlational_query_bound", degree=k, dimension=100 * k)
    for f, g in (("erf", "erf"), ("sin", "sin"), ("tanh", "sin")):
        yield _asked("perfect_learning", None, BY_HAND, student=f, teacher=g)


def _polynomial(d: _Draw, n: int) -> str:
    terms = []
    for _ in range(d.randint(1, 4)):
        factors = d.sample(range(1, n + 1), d.randint(1, min(3, n)))
        powers = [d.choice([1, 1, 1, 2, 3]) for _ in factors]
        product = "*".join(
            f"x{i}" if p == 1 else f"He({p}, x{i})" for i, p in zip(factors, powers, strict=True)
        )
        terms.append(d.choice(["", "", "2*", "3/2*", "sqrt(2)*"]) + product)
    return " + ".join(terms)


@_plan(
    "leaps, filtrations, staircases, projections, fits, gradients, giant steps and sample "
    "complexities of polynomials and of sums of products of functions: exact",
    _EXACT,
)
def leaps() -> Iterator[Record]:
    d = _Draw(f"{SEED} leaps")
    others = ("sign(x1) + abs(x1)*x2", "relu(x1 - x2)*x3 + sign(x1*x2)", "tanh(x1) + x2*relu(x1)",
              "erf(x1)*erf(x2)", "cos(x1) + x2", "z**2*exp(-z**2)", "sign(x1)*sign(x2)*sign(x3)",
              "relu(x1 + x2)", "5", "x1*(")  # fmt: skip
    for k in range(50):
        target = _polynomial(d, d.choice([1, 2, 3, 3, 4])) if k < 40 else others[k - 40]
        run = ALWAYS if k % 8 == 0 else SLOW
        yield _asked("leaps", None, run if k < 40 else BY_HAND, target=target)
        more: Record = d.choice([{}, {}, {"order": 2}, {"student": "relu"},
                                 {"student": "relu", "biases": True}])  # fmt: skip
        yield _asked("staircase", None, run, target=target, **more)
    yield _asked("staircase", None, ALWAYS, target="x1 + x1*x2 + He(3, x1)*x3", readout=[1, -1])
    yield _asked("staircase", None, ALWAYS, target="x1 + x1*x2 + x1*x2*x3", order=0)
    for k in range(50):
        target = _polynomial(d, d.choice([2, 3])) if k < 44 else others[k - 44]
        n = max([int(i) for i in re.findall(r"x(\d)", target)], default=1)
        rows = [[d.randint(-2, 2) for _ in range(n)] for _ in range(d.randint(1, max(1, n - 1)))]
        yield _asked("projection", None, ALWAYS if k % 9 == 0 else SLOW, target=target, onto=rows,
                     degree=d.randint(0, 2))  # fmt: skip
    for k in range(20):
        target = _polynomial(d, 3)
        yield _asked("fit", None, ALWAYS if k % 9 == 0 else SLOW, target=target,
                     samples=d.choice(["1", "3/2", "2"]), width=d.choice(["0", "1", "3/2"]),
                     steps=d.randint(1, 3))  # fmt: skip
    for k in range(24):
        target = _polynomial(d, d.choice([1, 2, 3]))
        student = d.choice(["relu", "erf", "tanh", "sin", "gelu"])
        run = ALWAYS if k % 9 == 0 else SLOW
        yield _asked("gradient", None, run, student=student, target=target)
        yield _asked("giant_step", None, run, student=student, target=target,
                     noise_variance=d.choice(["0", "1/4"]))  # fmt: skip
        yield _asked("sample_complexity", None, run, student=student, target=target)


# ---------------------------------------------------------------------- spectra, optima, series


def _few_models(d: _Draw) -> Iterator[tuple[int, Record]]:
    pairs = [("tanh", "sin"), ("erf", "erf"), ("sin", "tanh")]
    for k in range(12):
        student, teacher = pairs[k % 3]
        make = _step if k % 2 else _given
        yield k, make(d, student, teacher)


@_plan(
    "spectra of spiked features: edges, masses, atoms, outliers, distribution function and "
    "transform at points, of sample and population covariances",
    "positions of edges are found to 1e-9 or so; distribution functions to their stated masses; "
    "relative deviations of 1e-9 are allowed",
)
def spectra() -> Iterator[Record]:
    d = _Draw(f"{SEED} spectra")
    for k, model in _few_models(d):
        yield _asked("spectrum", model, SLOW if k == 0 else BY_HAND, alpha=d.log(0.3, 4),
                     at=[0.02, 0.2, 1.0, 3.0])  # fmt: skip
    yield _asked("spectrum", _given(d, "tanh", "sin"), BY_HAND, alpha=2.0, at=[0.1, 1.0],
                 covariance="population")  # fmt: skip


@_plan(
    "optima of spiked features (penalty, step, both), bounds, limits, bounds over the step and for "
    "letters, exact derivatives; some to 30 digits"
)
def optima() -> Iterator[Record]:
    d = _Draw(f"{SEED} optima")
    for k, model in _few_models(d):
        model["noise_variance"] = d.log(0.05, 1)
        run = SLOW if k == 0 else BY_HAND
        yield _asked("bounds", model, run)
        yield _asked("asymptotics", model, run)
        yield _asked("optimal_ridge", model, BY_HAND, alpha=d.log(0.5, 4))
        if k % 2:
            yield _asked("optimal_step_size", model, BY_HAND, alpha=d.log(0.5, 4), ridge=0.1)
        yield _asked("sensitivities", model, BY_HAND, alpha=d.log(0.5, 4), ridge=d.log(0.01, 1))
        if k in (0, 4):
            yield _asked("bounds", model, BY_HAND, digits=30)
            yield _asked("asymptotics", model, BY_HAND, digits=30)
            yield _asked("optimal_ridge", model, BY_HAND, alpha=2.0, digits=30)
        if k == 1:
            yield _asked("optimal_hyperparameters", model, BY_HAND, alpha=2.0)
    for student, teacher in (("tanh", "sin"), ("erf", "erf")):
        yield _asked("bounds_over_step", None, BY_HAND, student=student, teacher=teacher)
        for _ in range(3):
            yield _asked("letter_bounds", None, BY_HAND, student=student, teacher=teacher,
                         strengths=[d.uniform(0.2, 2), d.uniform(-2, -0.2)],
                         variances=[d.log(0.8, 2), d.log(0.8, 2)],
                         alignment=d.uniform(0.3, 0.99))  # fmt: skip
        yield _asked("learned_bias_bound", None, BY_HAND, student=student, teacher=teacher,
                     spike_strength=1.2, bulk_variance=1.1, alignment=0.9)  # fmt: skip


@_plan("coefficients of the series for many samples, small and large penalties, short steps")
def expansions() -> Iterator[Record]:
    d = _Draw(f"{SEED} expansions")
    for j, (student, teacher, centre) in enumerate(_ONE_STEP[:3]):
        model = {"is": "OneGradientStep", "student": student, "teacher": teacher,
                 "alpha": d.log(1.2, 4), "beta": d.log(0.3, 1), "step_size": d.log(0.5, 5),
                 "noise_variance": 0.25, "centre": centre}  # fmt: skip
        for name in ("small_ridge", "large_alpha", "small_step"):
            at = {} if name.endswith("ridge") else {"ridge": 0.1}
            yield _asked("expansion", model, SLOW if j else ALWAYS, name=name, order=2, **at)
        equal = {**model, "alpha": 1.5, "beta": 1.5}
        yield _asked("expansion", equal, name="small_ridge", order=1)
    for student, teacher in (("tanh", "sin"), ("erf", "erf")):
        model = _given(d, student, teacher, beta=0.7)
        yield _asked("expansion", model, BY_HAND, name="large_alpha", order=2, ridge=0.1)
        yield _asked("expansion", model, BY_HAND, name="small_ridge", order=1, alpha=2.0)
        yield _asked("expansion", model, BY_HAND, name="large_ridge", order=2, alpha=2.0)
        model = _step(d, student, teacher)
        yield _asked("expansion", model, BY_HAND, name="small_step", order=2, alpha=2.0, ridge=0.1)


# ---------------------------------------------------------------------- proofs and evidence


@_plan(
    "proven intervals of saddle points, spikes, risks, kernels, τ* and Hermite coefficients",
    "another proof may have other ends: intervals have to meet, and the new one may be four times "
    "as wide at most",
)
def certificates() -> Iterator[Record]:
    d = _Draw(f"{SEED} certificates")
    for k, f in enumerate(("tanh", "softplus", "erf", "relu", "sigmoid", "exp(-z**2)*tanh(z)")):
        yield _asked("hermite_enclosures", None, ALWAYS if k == 0 else SLOW, f=f, order=4)
    for student, teacher, centre in _ONE_STEP[:3]:
        model = {"is": "OneGradientStep", "student": student, "teacher": teacher,
                 "alpha": d.log(1.2, 4), "beta": d.log(0.3, 1), "step_size": d.log(0.5, 5),
                 "noise_variance": 0.25, "centre": centre}  # fmt: skip
        yield _asked("certificate", model, BY_HAND, proof="risk", at={"ridge": 0.1})
        yield _asked("certificate", model, BY_HAND, proof="weight_spike", at={})
        yield _asked("certificate", model, BY_HAND, proof="conjugate_kernel", at={})
    for student, teacher in (("tanh", "sin"), ("erf", "erf")):
        model = {**_step(d, student, teacher), "alpha0": 20.0}
        yield _asked("certificate", model, BY_HAND, proof="certified_spike", at={})
        yield _asked("certificate", model, BY_HAND, proof="certified_coefficients",
                     at={"node": 0.7})  # fmt: skip
        yield _asked("certificate", model, BY_HAND, proof="solve", at={"alpha": 1.5, "ridge": 0.1})
        yield _asked("certificate", model, BY_HAND, proof="bounds", at={})
    yield _asked("tau_star_certificate", None, BY_HAND, student="erf", teacher="erf")


@_plan(
    "the evidence of all claims, without slow checks: status, kind and outcome of each, and the "
    "numbers that are no rounding errors",
    "simulated values repeat to rounding that grows: 1e-6",
)
def evidence() -> Iterator[Record]:
    import giantstep as gs

    for claim in gs.claims():
        yield _asked("claim", None, BY_HAND, identifier=claim.identifier)


@_plan(
    "small simulations with fixed seeds: means and standard errors",
    "the same samples up to rounding in the order of sums: 1e-7",
)
def simulations() -> Iterator[Record]:
    small = {"dimension": 40, "alpha": [0.5, 2.0], "ridge": 0.1, "seeds": 3, "seed": 5}
    spiked = {"is": "SpikedRandomFeatures", "student": "tanh", "teacher": "sin",
              "step_size": 2.0, "alpha0": 8.0, "noise_variance": 0.25}  # fmt: skip
    names = ["test_error_mean", "test_error_standard_error", "training_error_mean"]
    yield _asked("simulate", spiked, ALWAYS, names=names, arguments=small)
    yield _asked("simulate", {**spiked, "student": "erf", "teacher": "erf"}, names=names,
                 arguments={**small, "seed": 11})  # fmt: skip
    letters = {"is": "VocabularyFeatures", "student": "tanh", "teacher": "sin",
               "letters": [1.0, -0.5], "fractions": [0.5, 0.5], "step_size": 2.0,
               "alpha0": 8.0}  # fmt: skip
    yield _asked("simulate", letters, names=names[:1], arguments=small)
    convex = {"is": "ConvexReadout", "features": spiked, "loss": "huber(0.5)"}
    yield _asked("simulate", convex, BY_HAND, names=names[:1], arguments=small)
    one = {"is": "OneGradientStep", "student": "erf", "teacher": "erf", "alpha": 2.0,
           "beta": 1.5, "step_size": 4.0, "noise_variance": 0.25}  # fmt: skip
    yield _asked(
        "simulate", one, names=["risk_initial", "risk_trained"],
        arguments={"dimension": 40, "ridge": 0.1, "seeds": 3, "seed": 5},
    )  # fmt: skip
    yield _asked(
        "simulate_giant_steps", None, BY_HAND, target="x1 + x1*x2",
        arguments={"dimension": 40, "samples": 400, "width": 20, "steps": 2, "seeds": 2},
    )  # fmt: skip
    yield _asked(
        "preprocessed_step", None, BY_HAND, student="relu", target="x1*x2",
        arguments={"dimension": 20, "samples": 2000, "width": 50, "seeds": 2},
    )  # fmt: skip


# ---------------------------------------------------------------------- the command line

_COMMANDS = (
    "", "curve", "solve", "optimal", "kernel", "srf", "srf curve", "srf phase", "srf bounds",
    "srf spectrum", "srf figure", "one-step", "one-step risk", "one-step spectrum",
    "one-step phase", "one-step large-steps", "expand", "expand srf", "expand one-step", "claims",
    "verify", "hermite", "expect", "gradient", "complexity", "leap", "staircase", "project",
    "giant-steps",
)  # fmt: skip

_EXAMPLES: tuple[tuple[str, str], ...] = (
    (ALWAYS, "hermite|erf(z)|--order|9"),
    (ALWAYS, "hermite|gelu|--closed-form"),
    (SLOW, "hermite|erf(a*z + b)|--parameter|a:positive|--parameter|b:real|--closed-form"),
    (SLOW, "hermite|tanh|--order|11|--certified"),
    (ALWAYS, "expect|erf(z)**2"),
    (SLOW, "expect|relu(a*z + b)|--parameter|a:positive|--parameter|b:real"),
    (ALWAYS, "expect|erf(u)*erf(v)|--joint|rho"),
    (SLOW, "expect|relu(u)*relu(v)|--joint|rho|--latex"),
    (SLOW, "expect|erf(u)*relu(v)|--joint|1/2|--variances|2,3|--means|0,1"),
    (SLOW, "expect|sin(u)*sin(v)|--joint|cos(t)|--parameter|t:real"),
    (ALWAYS, "gradient|relu|x1*x2 + He(3, x1)"),
    (SLOW, "gradient|relu|1 + x1 + x1*x2|--remove|0,1"),
    (SLOW, "gradient|erf|tanh(x1) + x2*relu(x1)|--order|3"),
    (SLOW, "gradient|mu|x1 + x1*x2|--latex"),
    (SLOW, "complexity|x1*x2 + x1**2"),
    (SLOW, "complexity|He(3, x1)|--student|tanh"),
    (SLOW, "leap|x1 + x1*x2 + x1*x2*x3"),
    (SLOW, "leap|x1*x2 + He(3, x1)|--latex"),
    (SLOW, "leap|x1 + 2*x2 + He(2, x1)/2 + He(3, x3)|--direction|1,0,0"),
    (BY_HAND, "leap|sign(x1) + abs(x1)*x2"),
    (BY_HAND, "leap|z**2*exp(-z**2)|--out|leap.html"),
    (ALWAYS, "staircase|x1 + x1*x2"),
    (SLOW, "staircase|x1*x2 + x3|--order|2"),
    (SLOW, "staircase|x1 + He(2, x1)*x2|--student|relu"),
    (SLOW, "staircase|x1 + x1*x2 + He(3, x1)*x3|--readout|1,-1"),
    (BY_HAND, "staircase|sign(x1) + abs(x1)*x2|--out|staircase.html"),
    (SLOW, "project|x1 + x1*x2 + He(2, x2)|--onto|1,0|--degree|1"),
    (SLOW, "project|relu(x1) + relu(x2)|--onto|1,1"),
    (SLOW, "project|x1 + sqrt(2)*x2 + x1*x3|--onto|1,sqrt(2),0; 0,0,1|--latex"),
    (SLOW, "project|x1 + He(2, x1)*x2 + He(2, x2)*x3|--regimes|--steps|3"),
    (SLOW, "project|x1 + x1*x2|--regimes|--exponents|1,0; 3/2,1; 2,3/2|--student|relu"),
    (SLOW, "giant-steps|x1 + x1*x2 + x1*x2*x3|--steps|3"),
    (ALWAYS, "kernel|--list"),
    (SLOW, "kernel|sherrington-kirkpatrick|--target|c|--out|sk.c"),
    (BY_HAND, "kernel|spiked-random-features|--student|erf|--teacher|erf|--out|kernel.py"),
    (BY_HAND, "kernel|spiked-random-features|--stage|program"),
    (BY_HAND, "kernel|logistic-regression|--stage|fused"),
    (SLOW, "curve|--student|erf|--teacher|sin(z) + He(3, z)/6|--alpha|0.5,1,2|--table-only"),
    (SLOW, "curve|--student|tanh|--teacher|sin|--alpha|0.1:10:40|--ridge|0.01|--table-only"),
    (SLOW, "solve|--student|tanh|--teacher|sin|--alpha|2|--ridge|0.1"),
    (BY_HAND, "solve|--student|tanh|--teacher|sin|--alpha|2|--ridge|0.1|--digits|50"),
    (BY_HAND, "solve|--student|tanh|--teacher|sin|--alpha|2|--ridge|0.1|--certify"),
    (BY_HAND, "solve|--student|erf|--teacher|erf|--alpha|1|--ridge|1e-3|--certify|--out|"
              "proof.json"),
    (BY_HAND, "optimal|--student|tanh|--teacher|sin|--noise|0.25|--alpha|2"),
    (BY_HAND, "optimal|--student|erf|--teacher|erf|--noise|0.1|--alpha|0.5:4:8"),
    (BY_HAND, "optimal|--student|erf|--teacher|erf|--noise|0.1|--alpha|2|--digits|30"),
    (BY_HAND, "optimal|--what|step-size|--student|erf|--teacher|erf|--ridge|0.05|--bounds|0.5:10"),
    (BY_HAND, "optimal|--joint|--student|erf|--teacher|erf|--noise|0.1|--alpha|0.5:4:8"),
    (BY_HAND, "srf|curve|--letters|1,-0.5|--fractions|0.5,0.5|--width|600"),
    (BY_HAND, "srf|bounds|--student|erf|--teacher|erf"),
    (BY_HAND, "srf|spectrum|--student|erf|--teacher|sin|--alpha|3|--beta|0.5"),
    (SLOW, "one-step|risk|--student|erf|--teacher|erf|--noise-variance|0.25"),
    (BY_HAND, "one-step|spectrum|--student|tanh|--teacher|relu|--centre|--step-size|6|--alpha|4"),
    (SLOW, "one-step|large-steps|--student|erf|--teacher|erf"),
    (BY_HAND, "expand|srf|large-alpha|--student|tanh|--teacher|sin|--ridge|0.1"),
    (SLOW, "expand|one-step|small-ridge|--student|erf|--teacher|erf|--alpha|1.5|--beta|1.5|"
           "--order|3"),
    (SLOW, "claims"),
    (BY_HAND, "verify|block-structure|invariances"),
    (SLOW, "nothing"),
    (SLOW, "solve|--student|tanh(|--teacher|sin|--alpha|2|--ridge|0.1"),
    (SLOW, "curve|--student|relu|--teacher|tanh|--table-only"),
    (SLOW, "solve|--student|tanh|--teacher|sin|--alpha|-2|--ridge|0.1"),
)  # fmt: skip


@_plan(
    "what commands print: --help of each, the examples that are cheap, calls that are refused; "
    "exit codes and names of files written",
    "times, paths, versions and numbers below 1e-8 are taken out; of other numbers the last digit "
    "may differ by one",
)
def transcripts() -> Iterator[Record]:
    for name in _COMMANDS:
        yield _asked("command", None, ALWAYS if not name or name == "solve" else SLOW,
                     arguments=[*name.split(), "--help"])  # fmt: skip
    for run, example in _EXAMPLES:
        yield _asked("command", None, run, arguments=example.split("|"))
