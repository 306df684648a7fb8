"""Record what giantstep answers, and compare its answers with the recorded ones.

A file holds records: a question asked through public names or the command line, its inputs as data,
and what was answered, refusals included. README.md in the folder above describes the files.

    python tests/reference/golden/record.py                      # ask what has no answer yet
    python tests/reference/golden/record.py --compare            # all records, against this code
    python tests/reference/golden/record.py --only spiked --again            # one file anew
    python tests/reference/golden/record.py --only spiked --again --record 17 --record 31

Each answer is written at once, so that a run that was interrupted goes on where it stopped.
Exit status: 0 if nothing differs, 1 if something does, 2 if the call was wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
RELATIVE = 1e-13
# Numbers of this size are what cancellation leaves of numbers of order one.
FLOOR = 2e-16
_ZERO = Decimal("1e-35")
_BAR = re.compile(r"\d+%\|")
_NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.IGNORECASE)

Record = dict[str, Any]


# ---------------------------------------------------------------------- answers as data


def plain(value: Any, digits: int | None = None) -> Any:
    """Return an answer as JSON can hold it: floats as they are, many digits as text."""
    import sympy as sp

    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return str(value)
    if hasattr(value, "_mpf_"):
        return _decimal(value, digits or 30)
    if isinstance(value, sp.MatrixBase):
        return [[plain(x) for x in row] for row in value.tolist()]
    if isinstance(value, sp.Basic):
        return exact(value)
    if isinstance(value, Mapping):
        return {str(key): plain(x, digits) for key, x in value.items()}
    if hasattr(value, "midpoint") and hasattr(value, "radius"):
        return {"lower": _decimal(value.lower, 40), "upper": _decimal(value.upper, 40)}
    if hasattr(value, "standard_error"):
        return _attributes(value, "mean standard_error")
    if hasattr(value, "projector"):
        return plain(value.projector())
    if hasattr(value, "tolist"):
        return plain(value.tolist(), digits)
    if isinstance(value, list | tuple):
        return [plain(x, digits) for x in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if type(value).__name__ == "Fraction":
        return str(value)
    if hasattr(value, "value"):
        return plain(value.value, digits)
    raise TypeError(f"no rule for {type(value).__name__}: {value!r}")


def exact(expr: Any) -> Record:
    """Return an expression as it is printed, and its value where its symbols have one."""
    import sympy as sp

    point = {s: _point_of(s) for s in sorted(expr.free_symbols, key=lambda s: str(s.name))}
    value = sp.N(expr.subs(point).doit(), 40)
    found: Record = {"expr": str(expr), "value": _decimal_of_complex(value)}
    if point:
        found["at"] = {s.name: str(v) for s, v in point.items()}
    return found


def _point_of(symbol: Any) -> Any:
    """Return the number that a name stands for, whatever other names there are."""
    import sympy as sp

    k = sum(map(ord, symbol.name)) % 6
    if symbol.is_integer:
        return sp.Integer(4 + 2 * k)
    if symbol.name == "rho":
        return sp.Rational(3, 10)
    return sp.Rational((3, 5, 4, 7, 8, 9)[k], (7, 11, 3, 5, 13, 17)[k])


def _decimal_of_complex(value: Any) -> str:
    if value.is_number and not value.is_real and value.is_finite:
        real, imaginary = value.as_real_imag()
        return f"{_decimal(real, 30)} + {_decimal(imaginary, 30)}*I"
    return _decimal(value, 30) if value.is_finite else str(value)


def _decimal(value: Any, digits: int) -> str:
    import mpmath

    ctx = mpmath.mp.clone()
    ctx.dps = digits + 10
    return str(ctx.nstr(ctx.mpf(value), digits, strip_zeros=True))


def _attributes(found: Any, names: str, digits: int | None = None) -> Record:
    return {name: plain(getattr(found, name), digits) for name in names.split()}


@dataclass
class Answer:
    """What was answered.

    Attributes
    ----------
    values : mapping
    errors : mapping from str to float
        Errors that the answer itself states, by value; those stated for one digit too many or too
        few do not make it another answer.
    relative : float
        A stated relative error of all values.
    """

    values: Record
    errors: Mapping[str, Any] | None = None
    relative: float = 0.0


# ---------------------------------------------------------------------- models


def _numbers(given: Mapping[str, Any]) -> dict[str, Any]:
    return {k: math.inf if v == "inf" else v for k, v in given.items()}


@cache
def _model_of(text: str) -> Any:
    import giantstep as gs

    given = _numbers(json.loads(text))
    kind = given.pop("is")
    if kind == "ConvexReadout":
        features = model_of(given.pop("features"))
        return gs.ConvexReadout(features, **given)
    if kind == "system":
        return gs.lower(_system(**given))
    owner, _, method = kind.partition(".")
    make = getattr(gs, owner)
    return (getattr(make, method) if method else make)(**given)


def model_of(given: Mapping[str, Any]) -> Any:
    """Return the model that data describe; equal data give the same object."""
    return _model_of(json.dumps(given, sort_keys=True))


def _system(name: str, **given: Any) -> Any:
    """Return a system of equations: one of the package by name, or one written as texts."""
    from importlib import import_module

    if name in _MEAN_FIELD:
        module = import_module(f"giantstep.derivations.mean_field.{_MEAN_FIELD[name]}")
        return getattr(module, name)(**given)
    import sympy as sp

    import giantstep as gs

    symbols = {s: sp.Symbol(s, **{kind: True}) for s, kind in given["symbols"].items()}
    z = sp.Symbol("z", real=True)

    def read(text: str) -> Any:
        names = {**symbols, "z": z, "E": lambda f: gs.GaussianExpectation(f, z)}
        return sp.sympify(text, locals=names)

    parameters = tuple(symbols[s] for s in given["parameters"])
    outputs = {name: read(text) for name, text in given.get("outputs", {}).items()}
    if "free_energy" in given:
        unknowns = tuple(symbols[s] for s in given["unknowns"])
        energy = gs.FreeEnergy(read(given["free_energy"]), unknowns, (), parameters)
        return gs.SaddlePointSystem.from_free_energy(energy, name=name, outputs=outputs)
    equations = {symbols[s]: read(text) for s, text in given["equations"].items()}
    start = {symbols[s]: read(text) for s, text in given.get("start", {}).items()}
    return gs.SaddlePointSystem.from_fixed_point(
        equations, name=name, parameters=parameters, outputs=outputs, start=start
    )


_MEAN_FIELD = {
    "ridge_regression": "ridge_regression",
    "gaussian_covariates": "gaussian_covariates",
    "margin_classifier": "logistic_regression",
    "sherrington_kirkpatrick": "sherrington_kirkpatrick",
}


# ---------------------------------------------------------------------- questions

QUESTIONS: dict[str, Callable[..., Answer]] = {}


def question(function: Callable[..., Answer]) -> Callable[..., Answer]:
    """Let records ask for this function by its name."""
    QUESTIONS[function.__name__] = function
    return function


def _stated(error: Any, value: Any) -> float:
    """Return a stated error in relation to its value."""
    if not value or not math.isfinite(float(error)):
        return 0.0
    return float(abs(error / value))


@question
def spiked_model(model: Any) -> Answer:
    found = _attributes(model.spike, "spike_strength bulk_variance alignment orthogonal_alignment")
    found["norm_overlap"] = plain(model.spike.norm_overlap)
    return Answer({**found, **_attributes(model, "best_linear_error leap_index bulk_spread")})


@question
def spiked_solve(
    model: Any, alpha: float, ridge: float, digits: int | None = None, width: int | None = None
) -> Answer:
    found = model.solve(alpha=alpha, ridge=ridge, digits=digits, width=width, progress=False)
    values = _attributes(
        found, "test_error training_error order_parameters conjugates", digits and digits + 3
    )
    if digits is None:
        return Answer(values, relative=_stated(found.quadrature_error, found.test_error))
    return Answer(values)


@question
def convex_solve(model: Any, alpha: float, ridge: float, digits: int | None = None) -> Answer:
    found = model.solve(alpha=alpha, ridge=ridge, digits=digits, progress=False)
    names = "test_error training_loss test_loss objective metrics order_parameters conjugates"
    values = _attributes(found, names, digits and digits + 3)
    if digits is None:
        return Answer(values, relative=_stated(found.quadrature_error, found.test_error))
    return Answer(values)


@question
def vocabulary_solve(model: Any, alpha: float, ridge: float, width: int | None = None) -> Answer:
    found = model.solve(alpha=alpha, ridge=ridge, width=width)
    names = "test_error training_error regularised_training_error order_parameters"
    return Answer(
        _attributes(found, names), relative=_stated(found.quadrature_error, found.test_error)
    )


@question
def vocabulary_classes(model: Any) -> Answer:
    names = "fraction spike bulk_variance bias"
    return Answer({"classes": [_attributes(c, names) for c in model.classes]})


_RISK = (
    "ridge paper_ridge initial trained improvement bias_initial bias_trained variance_initial "
    "variance_trained training_error_initial training_error_trained objective_initial "
    "objective_trained effective_ridge ridge_derivative inverse_s"
)


@question
def one_step_risk(
    model: Any,
    digits: int | None = None,
    ridge: float | None = None,
    paper_ridge: float | None = None,
) -> Answer:
    import giantstep as gs

    found = model.risk(
        digits=digits, ridge=ridge if paper_ridge is None else gs.paper_ridge(paper_ridge)
    )
    errors = {} if digits else {k: float(e) for k, e in found.errors.items()}
    return Answer(_attributes(found, _RISK, digits and digits + 3), errors)


@question
def one_step_weights(model: Any, digits: int | None = None) -> Answer:
    names = (
        "theta1 theta2 alignment critical_step_size supercritical singular_value bulk_edges "
        "alignment_spike alignment_teacher alignment_readout atom"
    )
    return Answer(_attributes(model.weight_spike(digits=digits), names, digits and digits + 3))


@question
def one_step_kernel(
    model: Any, digits: int | None = None, at: Sequence[float] = (), trained: bool = True
) -> Answer:
    found = model.conjugate_kernel(trained=trained, digits=digits)
    names = "edges masses atom bulk_edge threshold spike outlier label_alignment critical_step_size"
    values = _attributes(found, names, digits and digits + 3)
    if at:
        values["density"] = plain(found.density(list(at)))
        values["cumulative"] = plain(found.cumulative_at(list(at)))
    return Answer(values)


@question
def one_step_optimal_ridge(model: Any, trained: bool = True, digits: int | None = None) -> Answer:
    found = model.optimum(over="ridge", trained=trained, digits=digits)
    return Answer(
        _attributes(
            found,
            "ridge paper_ridge risk kind effective_ridge vanishing infinite",
            digits and digits + 3,
        )
    )


@question
def one_step_ridgeless(model: Any, digits: int | None = None) -> Answer:
    return Answer(_attributes(model.ridgeless(digits=digits), _RISK, digits and digits + 3))


@question
def one_step_limits(model: Any, ridge: float) -> Answer:
    return Answer({x.name: plain(x.value) for x in model.limits(ridge=ridge).limits})


@question
def one_step_peak(model: Any, ridge: float, digits: int | None = None) -> Answer:
    names = "amplitude_initial amplitude_trained initial trained exact_initial exact_trained"
    found = model.interpolation_peak(ridge=ridge, digits=digits)
    return Answer(_attributes(found, names, digits and digits + 3))


@question
def one_step_several(model: Any, steps: int, ridge: float, fresh: bool = False) -> Answer:
    found = model.several_steps(steps, fresh)
    weights = found.weight_spike()
    return Answer(
        {
            **_attributes(found.risk(ridge=ridge), "initial trained effective_ridge"),
            **_attributes(weights, "theta1 theta2 singular_value"),
        }
    )


@question
def one_step_equivalence(model: Any, step_exponent: float = 0) -> Answer:
    found = model.equivalence(step_exponent)
    return Answer(
        {
            "holds": [str(a.verdict) for a in found.assumptions],
            **_attributes(found, "failure_degree failure_exponent best_linear_error"),
        }
    )


@question
def large_step_limit(
    student: str, teacher: str, centre: bool = False, digits: int | None = None
) -> Answer:
    import giantstep as gs

    found = gs.large_step_limit(student, teacher, centre=centre, digits=digits, progress=False)
    values = _attributes(found, "tau_star amplitude best_linear_error", digits and digits + 3)
    if digits:
        values["texts"] = list(found.texts or ())
    return Answer(values, errors={"tau_star": float(found.error)})


@question
def system_solve(model: Any, data: Any = None, digits: int | None = None, **at: float) -> Answer:
    found = model.solve(data=data, digits=digits, progress=False, **at)
    values = plain(found.values, digits and digits + 3)
    errors = {} if digits else {k: float(e) for k, e in found.errors.items()}
    return Answer(values, errors)


# ---------------------------------------------------------------------- kernels as files


@question
def kernel_file(model: Any, target: str, points: Sequence[Mapping[str, float]]) -> Answer:
    """Answers of a file that was written for a language; for Julia how long it is."""
    kernel = model if hasattr(model, "files") else model.kernel()
    kept = {k for k in kernel.parameters if k not in points[0]}
    rows = [{**{k: kernel.defaults[k] for k in kept}, **point} for point in points]
    files = kernel.files(target)
    run = {"c": _run_c, "mpmath": _run_mpmath, "jax": _run_jax}.get(target, _run_python)
    if target == "julia":
        ((name, text),) = files.items()
        _require_julia_syntax(text)
        return Answer({"file": name})
    answers = run(files, kernel, rows)
    values = {f"point {k}": found for k, (found, _) in enumerate(answers)}
    errors = {
        f"point {k}.{name}": error
        for k, (_, stated) in enumerate(answers)
        for name, error in stated.items()
    }
    return Answer(values, errors)


_Rows = Sequence[Mapping[str, float]]
_Found = list[tuple[Record, dict[str, float]]]


def _module(files: Mapping[str, str], folder: Path) -> Any:
    import importlib.util

    ((name, text),) = files.items()
    path = folder / name
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _run_python(files: Mapping[str, str], kernel: Any, rows: _Rows) -> _Found:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        module = _module(files, Path(folder))
        table = [[row[name] for name in module.PARAMETERS] for row in rows]
        found = module.solve_many(table)
    values, errors = found[0], found[1]
    names = [name for name in module.OUTPUTS if name in kernel.outputs]
    return [
        (
            {name: plain(float(v[module.OUTPUTS.index(name)])) for name in names},
            {name: float(e[module.OUTPUTS.index(name)]) for name in names},
        )
        for v, e in zip(values, errors, strict=True)
    ]


def _run_mpmath(files: Mapping[str, str], kernel: Any, rows: _Rows) -> _Found:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        module = _module(files, Path(folder))
        found: _Found = []
        for row in rows:
            given = {name: repr(row[name]) for name in module.PARAMETERS}
            answer = module.solve_point(given, digits=20)
            found.append(({name: _decimal(answer[name][0], 20) for name in kernel.outputs}, {}))
    return found


def _run_jax(files: Mapping[str, str], kernel: Any, rows: _Rows) -> _Found:
    import jax

    jax.config.update("jax_enable_x64", True)
    return _run_python(files, kernel, rows)


def _run_c(files: Mapping[str, str], kernel: Any, rows: _Rows) -> _Found:
    import importlib.util
    import tempfile

    place = FOLDER.parents[1] / "symbolic" / "lowering" / "compiled_c.py"
    spec = importlib.util.spec_from_file_location("compiled_c", place)
    assert spec is not None and spec.loader is not None
    compiled_c = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(compiled_c)
    with tempfile.TemporaryDirectory() as folder:
        compiled = compiled_c.CompiledKernel(files, Path(folder), ("-O1",))
        found: _Found = []
        for row in rows:
            answer = compiled.solve(row)
            names = [name for name in compiled.outputs if name in kernel.outputs]
            found.append(
                (
                    {name: plain(float(answer.values[name])) for name in names},
                    {name: float(answer.errors[name]) for name in names},
                )
            )
    return found


def _require_julia_syntax(text: str) -> None:
    import tree_sitter
    import tree_sitter_julia

    parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_julia.language()))
    assert not parser.parse(text.encode()).root_node.has_error


# ---------------------------------------------------------------------- exact results


def _symbols(kinds: Mapping[str, str]) -> dict[str, Any]:
    import sympy as sp

    return {name: sp.Symbol(name, **{kind: True}) for name, kind in kinds.items()}


@question
def expect(
    integrand: str,
    parameters: Mapping[str, str] | None = None,
    joint: str | None = None,
    variances: Sequence[str] = ("1", "1"),
    means: Sequence[str] = ("0", "0"),
) -> Answer:
    import sympy as sp

    import giantstep as gs

    symbols = _symbols(parameters or {})
    u, v, z = (sp.Symbol(name, real=True) for name in "uvz")
    if joint is None:
        expr = gs.parse_expression(integrand, {**symbols, "z": z})
        return Answer({"mean": exact(gs.expect(expr, z))})
    expr = gs.parse_expression(integrand, {**symbols, "u": u, "v": v})
    numbers = [sp.sympify(text, locals=symbols) for text in (joint, *variances, *means)]
    pair = gs.correlated_pair(u, v, numbers[0], numbers[1:3], numbers[3:5])
    return Answer({"mean": exact(gs.expect(expr, pair))})


@question
def dual_activation(f: str, g: str | None = None) -> Answer:
    import sympy as sp

    import giantstep as gs

    rho = sp.Symbol("rho", real=True)
    found = gs.dual_activation(f, rho, g)
    values: Record = {} if found.closed_form is None else {"dual": exact(found.closed_form)}
    values["coefficients"] = plain(found.coefficients[:5])
    return Answer(values)


@question
def hermite_coefficients(f: str, order: int) -> Answer:
    import giantstep as gs

    found = gs.hermite_coefficients(f, order)
    values: Record = {"coefficients": [exact(c) for c in found]}
    if found.closed_form is not None:
        values["has closed form"] = True
    return Answer(values)


@question
def information_exponent(f: str) -> Answer:
    import giantstep as gs

    return Answer({"exponent": gs.information_exponent(f)})


@question
def conditional_equivalence(student: str) -> Answer:
    import giantstep as gs

    found = gs.conditional_equivalence(student)
    parts = {name: getattr(found, name) for name in ("mean", "slope", "second_moment")}
    return Answer(
        {
            name: exact(part.definition if part.closed_form is None else part.closed_form)
            for name, part in parts.items()
        }
    )


@question
def first_step(student: str, target: str) -> Answer:
    import giantstep as gs

    names = "mean_derivative label_square spike bulk output alignment"
    return Answer(_attributes(gs.first_step(student, target), names))


@question
def correlational_query_bound(degree: int, dimension: int) -> Answer:
    import giantstep as gs

    found = gs.correlational_query_bound(degree, dimension)
    return Answer(_attributes(found, "queries overlap tolerance samples"))


@question
def perfect_learning(student: str, teacher: str) -> Answer:
    import giantstep as gs

    names = "spike_strength step_size coefficient proven"
    found = gs.perfect_learning(student, teacher)
    return Answer({"found": [_attributes(p, names) for p in found]})


# ---------------------------------------------------------------------- leaps and staircases


@question
def leaps(target: str) -> Answer:
    import giantstep as gs

    found = gs.leaps(target)
    values: Record = {"undetermined": sorted(found.undetermined)}
    if found.leap_index is not None:
        values["leap_index"] = found.to_dict()["leap_index"]["value"]
    if found.filtration is not None:
        values["filtration"] = [
            {"order": level.order, "subspace": plain(level.subspace)}
            for level in found.filtration.levels
        ]
    for name in ("coordinate_leap", "isotropic_leap"):
        part = getattr(found, name)
        if part is not None:
            values[name] = {"value": int(part), "orders": plain(part.orders)}
    part = found.generative_leap
    if part is not None:
        values["generative_leap"] = [part.lower, part.upper]
    return Answer(values)


@question
def staircase(target: str, symbolic: bool = False, **options: Any) -> Answer:
    """A staircase of a text, or of the expression that SymPy reads in it."""
    import sympy as sp

    import giantstep as gs

    found = gs.staircase(sp.sympify(target) if symbolic else target, **options)
    return Answer(
        {
            "subspaces": [plain(space) for space in found.subspaces],
            "dimensions": [space.dimension for space in found.subspaces],
            "standing": [str(step.standing) for step in found.steps],
            "saturates": found.saturates,
        }
    )


@question
def projection(target: str, onto: Any, degree: int = 0) -> Answer:
    import giantstep as gs

    names = "fitted residual residual_norm conditional_variance norm_squared"
    return Answer(_attributes(gs.project(target, onto, degree), names))


@question
def fit(target: str, samples: str, width: str, steps: int = 1) -> Answer:
    from fractions import Fraction

    import giantstep as gs

    found = gs.predict_fit(target, Fraction(samples), Fraction(width), steps)
    names = "decided kappa fitted residual relation standing subspace"
    return Answer(_attributes(found, names))


@question
def gradient(student: str, target: str, order: int | None = None) -> Answer:
    import giantstep as gs

    found = gs.gradient_expansion(student, target, order)
    return Answer({"order": found.order, "vector": plain(found.vector())})


@question
def giant_step(target: str, student: str = "relu", noise_variance: str = "0") -> Answer:
    import sympy as sp

    import giantstep as gs

    found = gs.giant_step(target, student, noise_variance=sp.Rational(noise_variance))
    names = "leap_index order learned alignment squared_norm noise_square"
    return Answer(_attributes(found, names))


@question
def sample_complexity(student: str, target: str) -> Answer:
    import giantstep as gs

    found = gs.sample_complexity(student, target)
    rows = [
        {"subject": row.subject, "relation": row.relation, "scale": plain(row.scale)}
        for row in found.rows
    ]
    return Answer({**_attributes(found, "leap_index degree directions hessian_rank"), "rows": rows})


# ---------------------------------------------------------------------- spectra, optima, series


@question
def spectrum(
    model: Any, alpha: float, at: Sequence[float], covariance: str = "sample", width: int = 600
) -> Answer:
    found = model.spectrum(alpha=alpha, covariance=covariance)
    values = _attributes(found, "edges masses atoms outliers mean")
    values["cumulative"] = plain(found.cumulative_at(list(at)))
    values["transform"] = [
        [t.real, t.imag] for t in (complex(found.stieltjes(complex(x, 0.1))) for x in at)
    ]
    if model.width is None:
        values["outliers_at"] = plain(found.outliers_at(width))
    return Answer(values, relative=1e-9)


@question
def bounds(model: Any, digits: int | None = None) -> Answer:
    found = model.bounds(digits=digits)
    values = _attributes(
        found,
        "lower limit upper linear upper_coefficient lower_coefficients limit_coefficients",
        digits and digits + 3,
    )
    return Answer(values, {} if digits else {k: float(e) for k, e in found.errors.items()})


@question
def asymptotics(model: Any, digits: int | None = None) -> Answer:
    found = model.asymptotics(digits=digits)
    names = "many_samples many_samples_and_neurons strong_ridge order_parameters"
    return Answer(_attributes(found, names, digits and digits + 3))


@question
def optimal_ridge(model: Any, alpha: float, digits: int | None = None) -> Answer:
    found = model.optimum(over="ridge", alpha=alpha, digits=digits)
    values = _attributes(found, "value test_error kind", digits and digits + 3)
    return Answer(values, {} if digits else {"value": float(found.error)})


@question
def optimal_step_size(model: Any, alpha: float, ridge: float) -> Answer:
    found = model.optimum(over="step_size", alpha=alpha, ridge=ridge)
    return Answer(_attributes(found, "value test_error kind"), {"value": float(found.error)})


@question
def optimal_hyperparameters(model: Any, alpha: float) -> Answer:
    found = model.optimum(over=["ridge", "step_size"], alpha=alpha)
    return Answer(_attributes(found, "ridge step_size test_error is_interior"), relative=1e-9)


@question
def sensitivities(model: Any, alpha: float, ridge: float) -> Answer:
    found = model.sensitivities(alpha=alpha, ridge=ridge, progress=False)
    derivatives = {f"{a}, {b}": plain(v) for (a, b), v in found.derivatives.items()}
    errors = {f"{a}, {b}": float(v) for (a, b), v in found.errors.items()}
    return Answer({"derivatives": derivatives}, {f"derivatives.{k}": e for k, e in errors.items()})


@question
def bounds_over_step(student: str, teacher: str) -> Answer:
    import giantstep as gs

    found = gs.bounds_over_step(student, teacher, points=40)
    return Answer(_attributes(found, "alignment upper_points lower_points linear"))


@question
def letter_bounds(
    student: str, teacher: str, strengths: Any, variances: Any, alignment: float
) -> Answer:
    import giantstep as gs

    found = gs.letter_bounds(student, teacher, strengths, variances, alignment=alignment)
    errors = {name: float(found.errors[name]) for name in ("lower", "upper")}
    return Answer(_attributes(found, "lower upper"), errors)


@question
def learned_bias_bound(student: str, teacher: str, **spike: Any) -> Answer:
    import giantstep as gs

    found = gs.learned_bias_bound(student, teacher, **spike)
    return Answer(_attributes(found, "bias lower minima"))


@question
def expansion(model: Any, name: str, order: int, **at: float) -> Answer:
    found = model.expansion(name, order, **at)
    return Answer(
        {
            "parameter": found.parameter,
            "exponents": [str(e) for e in found.exponents],
            "coefficients": plain(found.coefficients, 30),
            "remainder_order": str(found.remainder_order),
        }
    )


# ---------------------------------------------------------------------- proofs and evidence


@question
def certificate(model: Any, proof: str, at: Mapping[str, Any]) -> Answer:
    """Proven intervals: those of another proof have to meet them, and be about as narrow."""
    found = getattr(model, proof)(
        **at, **({} if proof.startswith("certified") else {"certify": True})
    )
    proven = found if proof.startswith("certified") else found.certificate
    return Answer({"intervals": plain(proven.values)})


@question
def tau_star_certificate(student: str, teacher: str) -> Answer:
    import giantstep as gs

    found = gs.large_step_limit(student, teacher, certify=True, progress=False)
    return Answer({"intervals": plain(getattr(found.certificate, "values", None))})


@question
def hermite_enclosures(f: str, order: int, digits: int = 15) -> Answer:
    import giantstep as gs

    found = gs.hermite_coefficients(f, order).enclosures(digits)
    return Answer({"intervals": [plain(e) for e in found]})


@question
def claim(identifier: str) -> Answer:
    """The evidence of a claim: what was checked, by what means, and with what outcome."""
    import giantstep as gs

    (verdict,) = gs.verify([identifier], progress=False)
    (about,) = (c for c in gs.claims() if c.identifier == identifier)
    return Answer(
        {
            "identifier": identifier,
            "status": str(about.status.value),
            "passed": verdict.passed,
            "evidence": [
                {
                    "kind": str(e.kind.value),
                    "description": e.description,
                    "passed": e.passed,
                    "numbers": _large_numbers(e.to_dict()["details"]),
                }
                for e in verdict.evidence
            ],
            "skipped": list(verdict.skipped),
        },
        relative=1e-6,
    )


def _large_numbers(details: Any) -> Any:
    """Return the numbers among details that are no rounding errors."""
    if isinstance(details, Mapping):
        found = {k: _large_numbers(v) for k, v in details.items()}
        return {k: v for k, v in found.items() if v not in (None, {}, [])}
    if isinstance(details, list):
        found_list = [_large_numbers(v) for v in details[:12]]
        return [v for v in found_list if v not in (None, {}, [])]
    if isinstance(details, bool) or not isinstance(details, float):
        return None
    return details if math.isfinite(details) and abs(details) > 1e-3 else None


# ---------------------------------------------------------------------- simulations


@question
def simulate(model: Any, names: Sequence[str], arguments: Mapping[str, Any]) -> Answer:
    found = model.simulate(**arguments, progress=False, workers=1)
    return Answer({name: plain(found[name].values) for name in names}, relative=1e-7)


@question
def simulate_one_step(model: Any, names: Sequence[str], arguments: Mapping[str, Any]) -> Answer:
    found = model.simulate(**arguments, progress=False, workers=1)
    return Answer({name: plain(found[name].values) for name in names}, relative=1e-7)


@question
def simulate_giant_steps(target: str, arguments: Mapping[str, Any]) -> Answer:
    import giantstep as gs

    found = gs.simulate_giant_steps(target, **arguments, workers=1, progress=False)
    return Answer(
        {"squared_norms": plain(found.squared_norms), "test_error": plain(found.test_error)},
        relative=1e-7,
    )


@question
def preprocessed_step(student: str, target: str, arguments: Mapping[str, Any]) -> Answer:
    import giantstep as gs

    found = gs.train_by_preprocessed_step(student, target, **arguments, progress=False)
    names = "relevant_share test_error random_features_error linear_error"
    return Answer(_attributes(found, names), relative=1e-7)


# ---------------------------------------------------------------------- the command line


@question
def command(arguments: Sequence[str]) -> Answer:
    """What a command prints, its exit code, and the files that it writes."""
    import contextlib
    import io
    import os
    import tempfile
    from unittest import mock

    from giantstep.__main__ import main

    out, err = io.StringIO(), io.StringIO()
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            with (
                mock.patch.dict(os.environ, {"COLUMNS": "100"}),
                contextlib.redirect_stdout(out),
                contextlib.redirect_stderr(err),
            ):
                try:
                    code = main(list(arguments))
                except SystemExit as leaves:
                    code = leaves.code  # type: ignore[assignment]
        finally:
            os.chdir(before)
        files = sorted(p.name for p in Path(folder).iterdir() if p.is_file())
    return Answer(
        {"code": code, "out": _normal(out.getvalue()), "err": _normal(err.getvalue()),
         "files": files}
    )  # fmt: skip


def _normal(text: str) -> list[str]:
    """Return lines without what depends on the day, the place and the machine."""
    from giantstep import __version__

    text = re.sub(r"\x1b\[[0-9;]*m", "", text.replace(__version__, "<version>"))
    text = re.sub(r"\d+(?:\.\d+)? ?(?:s|ms|min|seconds?|minutes?)\b", "<time>", text)
    text = re.sub(r"\d+(?:\.\d+)?e-(?:0[89]|[1-9]\d+)\b", "<tiny>", text)
    text = re.sub(r"(?:/[\w.+-]+){2,}", "<path>", text)
    lines = [line.rsplit("\r", 1)[-1].rstrip() for line in text.splitlines()]
    while lines and not lines[-1]:
        lines.pop()
    return lines


# ---------------------------------------------------------------------- asking


def ask(record: Mapping[str, Any]) -> Record:
    """Return what is answered to a record's question: values, or a refusal."""
    import warnings

    from giantstep.errors import ApproximationWarning, GiantstepError

    given = dict(_numbers(record.get("at", {})))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ApproximationWarning)
            if "model" in record:
                given["model"] = model_of(record["model"])
            found = QUESTIONS[record["ask"]](**given)
    except Exception as refusal:
        # Errors of others are defects, but answers as well: that they go is to be seen.
        name = type(refusal).__name__
        kind = name if isinstance(refusal, GiantstepError) else f"{name}, not of giantstep"
        words = _normal(str(refusal).partition("\n")[0]) or [""]
        return {"refused": [kind, " ".join(words[0].split()[:12])]}
    answer: Record = {"values": found.values}
    leaves = dict(flat(found.values))
    errors = {
        name: float(f"{error:.1e}")
        for name, error in (found.errors or {}).items()
        if isinstance(leaves.get(name), float)
        and math.isfinite(error)
        and error > max(RELATIVE * abs(leaves[name]), FLOOR)
    }
    if errors:
        answer["errors"] = errors
    if found.relative > RELATIVE:
        answer["relative"] = float(f"{found.relative:.1e}")
    return answer


# ---------------------------------------------------------------------- comparing


@dataclass(frozen=True)
class Difference:
    """A field that is not what was recorded."""

    file: str
    record: str
    field: str
    old: Any
    new: Any
    size: float | None = None

    def __str__(self) -> str:
        size = "" if self.size is None else f"  relative difference {self.size:.1e}"
        old, new = (_short(x) for x in (self.old, self.new))
        return f"{self.file} #{self.record} {self.field}: old {old}, new {new}{size}"


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 120 else text[:117] + "…"


_ATOMS = ({"expr", "value"}, {"lower", "upper"}, {"expr", "value", "at"})


def flat(values: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the fields of an answer with their paths; expressions and intervals are one field."""
    if isinstance(values, Mapping) and set(values) not in _ATOMS:
        for key, value in values.items():
            yield from flat(value, f"{path}.{key}" if path else str(key))
    elif isinstance(values, list):
        for k, value in enumerate(values):
            yield from flat(value, f"{path}[{k}]")
        yield f"{path}.length", len(values)
    else:
        yield path, values


def differences(file: str, record: Mapping[str, Any], found: Mapping[str, Any]) -> list[Difference]:
    """Return where an answer is not the recorded one, beyond what it states of its errors."""
    old, new = record["found"], found
    name = str(record["id"])
    if "refused" in old or "refused" in new:
        if old.get("refused") == new.get("refused"):
            return []
        told = [x.get("refused", "an answer") for x in (old, new)]
        return [Difference(file, name, "refusal", *told)]
    recorded, answered = (dict(flat(_without_bars(x["values"]))) for x in (old, new))
    relative = max(RELATIVE, old.get("relative", 0.0))
    digits = record.get("at", {}).get("digits")
    sizes: dict[str, float] = {}
    for path, value in recorded.items():
        if _vector(path) and isinstance(value, float):
            sizes[_vector(path)] = max(sizes.get(_vector(path), 0.0), abs(value))
    rows = []
    for path, value in recorded.items():
        if path not in answered:
            rows.append(Difference(file, name, path, value, "nothing"))
            continue
        allowed = old.get("errors", {}).get(path, 0.0)
        allowed = max(allowed, RELATIVE * sizes.get(_vector(path), 0.0))
        size = _deviation(value, answered[path], relative, allowed, digits)
        if size is not None:
            rows.append(Difference(file, name, path, value, answered[path], size or None))
    return rows


def _without_bars(values: Any) -> Any:
    """Return what a command wrote without its progress bars, which depend on the time it took."""
    if not (isinstance(values, Mapping) and "err" in values):
        return values
    lines = [line for line in values["err"] if line and not _BAR.search(line)]
    return {**values, "err": lines}


def _vector(path: str) -> str:
    """Return which vector of order parameters a field is a component of; empty if of none.

    m, theta and psi of the letters are the solution of one linear system: its rounding, which
    depends on the machine's LAPACK, is relative to all of it and not to each component.
    """
    name, bracket, _ = path.removeprefix("order_parameters.").partition("[")
    if not bracket or not path.startswith("order_parameters."):
        return ""
    return "overlaps" if name in ("m", "theta", "psi") else name


def _deviation(
    old: Any, new: Any, relative: float, allowed: float, digits: int | None
) -> float | None:
    """Return how far two fields are apart, zero if that has no size; None if they agree."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        if "lower" in old:
            return _apart(old, new)
        return _decimals(old["value"], new["value"], 1e-27)
    if isinstance(old, float) and isinstance(new, float | int) and not isinstance(new, bool):
        size = abs(old - new)
        if size <= max(relative * abs(old), allowed, FLOOR):
            return None
        return size / abs(old) if old else size
    if isinstance(old, str) and isinstance(new, str):
        if old == new:
            return None
        if _is_number(old) and (digits or len(old) > 20):
            return _decimals(old, new, 10.0 ** (2 - (digits or 29)))
        return _texts(old, new)
    return None if old == new and isinstance(old, bool) == isinstance(new, bool) else 0.0


def _is_number(text: str) -> bool:
    try:
        Decimal(text)
    except InvalidOperation:
        return False
    return True


def _decimals(old: str, new: str, relative: float) -> float | None:
    if old == new:
        return None
    if not (_is_number(old) and _is_number(new)):
        return 0.0
    a, b = Decimal(old), Decimal(new)
    if not (a.is_finite() and b.is_finite()):
        return 0.0
    size = float(abs(a - b) / abs(a)) if a else float(abs(b))
    return None if size <= relative or abs(a - b) < _ZERO else size


def _apart(old: Mapping[str, str], new: Mapping[str, str]) -> float | None:
    """Intervals agree if they meet and the new one is about as narrow as the old one."""
    a, b, c, d = (Decimal(x) for x in (old["lower"], old["upper"], new["lower"], new["upper"]))
    scale = max(abs(a), abs(b))
    if a > d or c > b:
        return float(max(a - d, c - b) / (scale or 1))
    if d - c > 4 * (b - a) + Decimal("1e-14") * scale:
        return float((d - c) / (scale or 1))
    return None


def _texts(old: str, new: str) -> float | None:
    """Texts agree if they do so but for one unit of the last digit of a number."""
    words = [_NUMBER.sub("#", " ".join(x.split())) for x in (old, new)]
    if words[0] != words[1]:
        return 0.0
    worst = 0.0
    for a, b in zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True):
        x, y = (Decimal(t.replace("−", "-")) for t in (a, b))
        unit = Decimal(1).scaleb(int(x.as_tuple().exponent))
        if abs(x - y) > unit or ("." not in a and x != y):
            worst = max(worst, float(abs(x - y) / (abs(x) or 1)))
    return worst or None


# ---------------------------------------------------------------------- files


def files() -> list[Path]:
    """Return the recorded files."""
    return sorted(FOLDER.glob("*.json"))


def load(path: Path) -> dict[str, Any]:
    """Return a file: its header and its records."""
    return dict(json.loads(path.read_text(encoding="utf-8")))


def store(path: Path, document: Mapping[str, Any]) -> None:
    """Write a file in one step, a record a line."""
    from giantstep.atomic_files import write_atomically

    head = {k: v for k, v in document.items() if k != "records"}
    lines = [
        json.dumps(record, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        for record in document["records"]
    ]
    text = json.dumps(head, ensure_ascii=False, indent=1)[:-2]
    write_atomically(path, text + ',\n "records": [\n' + ",\n".join(lines) + "\n]}\n")


def chosen(document: Mapping[str, Any], run: str) -> list[Record]:
    """Return the records that a run asks for: "always", "slow" or "by hand"."""
    return [r for r in document["records"] if r.get("run", "slow") == run]


def record_file(name: str, options: argparse.Namespace) -> list[Difference]:
    """Ask what has no answer in a file, or all of it again; return what changed."""
    from tqdm.auto import tqdm

    from giantstep import __version__

    path = FOLDER / f"{name}.json"
    document = load(path) | {"giantstep": __version__}
    wanted = {int(r) for r in options.record or ()}
    changed: list[Difference] = []
    written = time.monotonic()
    for record in tqdm(document["records"], desc=name, unit="record", disable=None):
        if ("found" in record and not options.again) or (wanted and record["id"] not in wanted):
            continue
        found = ask(record)
        if "found" in record:
            changed += differences(name, record, found)
        record["found"] = found
        if time.monotonic() - written > 5:
            store(path, document)
            written = time.monotonic()
    store(path, document)
    return changed


def compare_file(path: Path, options: argparse.Namespace) -> list[Difference]:
    """Ask the records of a file and return where the answers differ."""
    from tqdm.auto import tqdm

    wanted = {int(r) for r in options.record or ()}
    rows: list[Difference] = []
    records = [r for r in load(path)["records"] if not wanted or r["id"] in wanted]
    if options.run:
        records = [r for r in records if r.get("run", "slow") == options.run]
    for record in tqdm(records, desc=path.stem, unit="record", disable=None):
        rows += differences(path.stem, record, ask(record))
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", action="append", metavar="NAME", help="this file (may be repeated)"
    )
    parser.add_argument(
        "--record", action="append", metavar="ID", help="this record (may be repeated)"
    )
    parser.add_argument("--again", action="store_true", help="record anew what is recorded")
    parser.add_argument("--compare", action="store_true", help="compare and write nothing")
    parser.add_argument(
        "--run", choices=("always", "slow", "by hand"), help="compare the records of one run only"
    )
    parser.add_argument("--list", action="store_true", help="name the files and stop")
    options = parser.parse_args(arguments)
    there = [path.stem for path in files()]
    names = options.only or there
    unknown = sorted({*names} - {*there})
    if unknown:
        parser.error(f"no file is named {', '.join(unknown)}; there are: {', '.join(there)}")
    if options.list:
        for name in names:
            records = load(FOLDER / f"{name}.json")["records"]
            runs = [len([r for r in records if r.get("run", "slow") == run])
                    for run in ("always", "slow", "by hand")]  # fmt: skip
            print(f"{name:16} {len(records):4} records: {runs[0]} always, {runs[1]} slow, "
                  f"{runs[2]} by hand")  # fmt: skip
        return 0
    rows: list[Difference] = []
    for name in names:
        begin = time.process_time()
        compared = options.compare
        found = (
            compare_file(FOLDER / f"{name}.json", options)
            if compared
            else record_file(name, options)
        )
        for row in found:
            print(row)
        rows += found
        seconds = time.process_time() - begin
        print(f"{name}: {len(found)} differences, {seconds:.0f} s of CPU", file=sys.stderr)
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
