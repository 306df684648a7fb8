"""Compute every exact reference value again, to 30 digits, and compare it with the stored one.

Stored values were obtained without giantstep; README.md beside this script says from where. Results
are written after each group of values, so a run that was interrupted goes on where it stopped.

    python tests/reference/regenerate.py
    python tests/reference/regenerate.py --only tanh --digits 40 --output tanh.json

Exit status: 0 if all values agree to their last digit, 1 if one does not or cannot be computed, 2
if the call was wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
DEFAULT_OUTPUT = FOLDER / "regenerated.json"
_FORMAT = "regenerated reference values"
_MOST_DIGITS = 200
# Stored zeros are exact ones.
_ZERO = Decimal("1e-25")


@dataclass(frozen=True)
class Group:
    """Values that are computed together.

    Attributes
    ----------
    name : str
    kind : str
        Which of :data:`KINDS` computes them.
    arguments : mapping
        What it is given.
    values : mapping of str to str
        Stored values as decimal numbers.
    digits : int
        Digits to which values are stored; trailing zeros may be left out.
    source : str
        Where the values come from.
    """

    name: str
    kind: str
    arguments: Mapping[str, Any]
    values: Mapping[str, str]
    digits: int
    source: str

    def fingerprint(self, digits: int) -> str:
        """Return a text that changes with everything that the computed values depend on."""
        from giantstep import __version__

        parts = [self.kind, self.arguments, sorted(self.values), digits, __version__]
        text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


# ---------------------------------------------------------------------- the tables


def groups() -> list[Group]:
    """Return all groups: those of this folder, and those that the package holds."""
    found = []
    for path in sorted(FOLDER.glob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if "groups" in document and "provenance" in document:
            source = f"{path.name}: {document['provenance']['source']}"
            found += [Group(**entry, source=source) for entry in document["groups"]]
    return [*found, *_spiked_groups(), *_one_step_groups()]


def _spiked_groups() -> Iterator[Group]:
    from giantstep.derivations.spiked_random_features.published import (
        reference_cases,
        reference_document,
    )

    source = reference_document()["provenance"]["source"]
    for case in reference_cases():
        values = dict(case.values) | (dict(case.spike) if case.takes_step else {})
        yield Group(
            f"spiked random features {case.name}", "spiked", {"case": case.name}, values, 25, source
        )


def _one_step_groups() -> Iterator[Group]:
    from giantstep.derivations.one_gradient_step.reference import reference_document

    document = reference_document()
    source = document["provenance"]["source"]
    for case in document["cases"]:
        arguments = {"model": case["model"], "paper_ridge": case["paper_ridge"]}
        yield Group(
            f"one step, network {case['name']}", "one step", arguments, case["values"], 16, source
        )
    for entry in document["optimal_ridge"]:
        values = {"paper_ridge": entry["paper_ridge"], "risk": entry["risk"]}
        name = f"optimal ridge, step {entry['model']['step_size']}"
        yield Group(name, "optimal ridge", {"model": entry["model"]}, values, 15, source)
    peak = document["interpolation_peak"]
    values = {
        f"{kind} {layer}": peak[layer][kind]
        for layer in ("initial", "trained")
        for kind in ("exact", "asymptotic")
    }
    arguments = {"model": peak["model"], "paper_ridge": peak["paper_ridge"]}
    yield Group("interpolation peak", "peak", arguments, values, 24, source)
    for row in document["large_step_bound"]:
        pair = {"student": row["student"], "teacher": row["teacher"]}
        values = {"amplitude": row["argmin"], "tau_star": row["tau"]}
        values["best_linear_error"] = row["best_linear_error"]
        name = f"large steps, {row['student']} on {row['teacher']}"
        yield Group(name, "large steps", pair, values, 16, source)


# ---------------------------------------------------------------------- how they are computed


def _moments(digits: int, activation: str) -> dict[str, Any]:
    from giantstep.symbolic.expressions.activations import activation as read, z
    from giantstep.symbolic.gaussian.expectation import expect
    from giantstep.symbolic.hermite.coefficients import hermite_coefficient

    function = read(activation)
    found: dict[str, Any] = {
        f"hermite {k}": lambda k=k: hermite_coefficient(function, k).evalf(digits)
        for k in range(12)
    }
    found["square"] = lambda: expect(function.expr**2, z).evalf(digits)
    found["slope square"] = lambda: expect(function.derivative**2, z).evalf(digits)
    return found


def _residual(digits: int, activation: str) -> dict[str, Any]:
    from giantstep.derivations.one_gradient_step.moments import exact_moments

    return {name: value.evalf(digits) for name, value in exact_moments(activation).items()}


def _bounds(digits: int, student: str, teacher: str, **numbers: str) -> dict[str, Any]:
    from giantstep import SpikedRandomFeatures

    given: dict[str, Any] = {name: float(value) for name, value in numbers.items()}
    model = SpikedRandomFeatures.from_parameters(student, teacher, **given)
    found = model.bounds(digits=digits)
    return {name: getattr(found, name) for name in ("upper", "lower", "limit")}


def _order_parameters(
    digits: int, student: str, teacher: str, alpha: str, ridge: str, **numbers: str
) -> dict[str, Any]:
    from giantstep import SpikedRandomFeatures

    given: dict[str, Any] = {name: float(value) for name, value in numbers.items()}
    model = SpikedRandomFeatures.from_parameters(student, teacher, **given)
    return dict(model.solve(alpha=float(alpha), ridge=float(ridge), digits=digits).order_parameters)


def _spiked(digits: int, case: str) -> dict[str, Any]:
    from giantstep.derivations.spiked_random_features.published import reference_cases

    (found,) = (c for c in reference_cases() if c.name == case)
    solution = found.solve(digits=digits)
    values = {
        "test_error": solution.test_error,
        "training_error": solution.training_error,
        **solution.order_parameters,
        **solution.conjugates,
    }
    factor = _exact(found.ridge) * _exact(found.model["beta"]) / _exact(found.alpha)
    values["regularised_training_error"] = values["training_error"] + factor * values["q2"]
    if found.takes_step:
        values |= _spike_after_step(found.model, digits)
    return values


def _spike_after_step(model: Mapping[str, str], digits: int) -> dict[str, Any]:
    import sympy as sp

    from giantstep.derivations.first_gradient import spike_mapping as mapping
    from giantstep.symbolic.expressions.activations import activation

    found = mapping.spike_mapping(activation(model["student"]), activation(model["teacher"]))
    rule = {
        mapping.step_size: sp.Rational(model["step_size"]),
        mapping.alpha0: sp.Rational(model["alpha0"]),
        mapping.noise: sp.Rational(model["noise_variance"]),
    }
    return {
        name: getattr(found, name).subs(rule).evalf(digits)
        for name in ("spike_strength", "bulk_variance", "alignment")
    }


def _one_step(digits: int, model: Mapping[str, str], paper_ridge: str) -> dict[str, Any]:
    import giantstep as gs

    network = _network(model)
    risk = network.risk(ridge=gs.paper_ridge(float(paper_ridge)), digits=digits)
    weights = network.weight_spike(digits=digits)
    kernel = network.conjugate_kernel(digits=digits)
    names = (
        "initial", "trained", "improvement", "training_error_initial", "training_error_trained",
        "effective_ridge", "ridge_derivative",
    )  # fmt: skip
    return {
        **{name: getattr(risk, name) for name in names},
        "s": 1 / risk.inverse_s,
        "spike": weights.theta1,
        "aligned_spike": weights.theta2,
        "singular_value": weights.singular_value,
        "teacher_alignment": weights.alignment_teacher,
        "readout_alignment": weights.alignment_readout,
        "threshold": kernel.threshold,
        "bulk_edge": kernel.bulk_edge,
        "kernel_eigenvalue": kernel.eigenvalue,
        "label_alignment": kernel.label_alignment,
    }


def _optimal_ridge(digits: int, model: Mapping[str, str]) -> dict[str, Any]:
    network = _network(model)
    best = network.optimum(over="ridge", trained=bool(network.step_size), digits=digits)
    return {"paper_ridge": best.paper_ridge, "risk": best.risk}


def _peak(digits: int, model: Mapping[str, str], paper_ridge: str) -> dict[str, Any]:
    import giantstep as gs

    found = _network(model).interpolation_peak(
        ridge=gs.paper_ridge(float(paper_ridge)), digits=digits
    )
    return {
        "exact initial": found.exact_initial,
        "exact trained": found.exact_trained,
        "asymptotic initial": found.initial,
        "asymptotic trained": found.trained,
    }


def _large_steps(digits: int, student: str, teacher: str) -> dict[str, Any]:
    from giantstep.derivations.one_gradient_step.large_steps import large_step_limit
    from giantstep.derivations.one_gradient_step.moments import exact_moments

    texts = large_step_limit(student, teacher, centre=True, digits=digits).texts
    assert texts is not None
    residual = exact_moments(teacher)["residual"].evalf(digits)
    return {"amplitude": texts[0], "tau_star": texts[1], "best_linear_error": residual}


def _network(model: Mapping[str, str]) -> Any:
    from giantstep.derivations.one_gradient_step.reference import model_of

    return model_of(model)


def _exact(text: str) -> Any:
    import mpmath

    ctx = mpmath.mp.clone()
    ctx.dps = _MOST_DIGITS
    return ctx.mpf(text)


KINDS: dict[str, Callable[..., dict[str, Any]]] = {
    "moments": _moments,
    "residual": _residual,
    "bounds": _bounds,
    "order parameters": _order_parameters,
    "spiked": _spiked,
    "one step": _one_step,
    "optimal ridge": _optimal_ridge,
    "peak": _peak,
    "large steps": _large_steps,
}


def compute(group: Group, digits: int) -> dict[str, str]:
    """Return the values of a group as decimal numbers with so many digits."""
    found = KINDS[group.kind](digits, **group.arguments)
    return {name: _text(found[name], digits) for name in group.values}


def _text(value: Any, digits: int) -> str:
    import mpmath
    import sympy as sp

    if callable(value):
        value = value()
    if isinstance(value, str):
        return value
    if isinstance(value, sp.Expr):
        value = value.evalf(digits)
        return "0" if value == 0 else str(value)
    ctx = mpmath.mp.clone()
    ctx.dps = digits + 10
    return str(ctx.nstr(ctx.mpf(value), digits, strip_zeros=False))


# ---------------------------------------------------------------------- comparison


def deviation(computed: str, stored: str, digits: int) -> Decimal:
    """Return the difference in units of the last stored digit; half a unit is rounding.

    Parameters
    ----------
    computed, stored : str
        Decimal numbers; the stored one may lack trailing zeros.
    digits : int
        Digits of the stored one.
    """
    found, known = Decimal(computed), Decimal(stored)
    if known == 0:
        return Decimal(0) if abs(found) < _ZERO else Decimal("Infinity")
    return abs(found - known).scaleb(digits - 1 - known.adjusted())


def agrees(computed: str, stored: str, digits: int) -> bool:
    """Return whether a number rounds to the stored one in its last digit, or the next."""
    return deviation(computed, stored, digits) <= Decimal("1.001")


# ---------------------------------------------------------------------- the run


def load(path: Path) -> dict[str, Any]:
    """Return what an earlier run has finished; nothing if the file holds something else."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        return dict(document["groups"]) if document["format"] == _FORMAT else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def store(path: Path, finished: Mapping[str, Any]) -> None:
    """Write results in one step: a reader never sees half of a file."""
    from giantstep.atomic_files import write_atomically

    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"format": _FORMAT, "groups": dict(sorted(finished.items()))}
    text = json.dumps(document, indent=1, ensure_ascii=False)
    write_atomically(path, text + "\n")


def regenerate(
    chosen: Sequence[Group], output: Path, digits: int, *, fresh: bool = False
) -> list[tuple[str, str, str, str, bool]]:
    """Compute groups and compare them: rows of group, value, computed, stored, agreement."""
    from tqdm.auto import tqdm

    from giantstep.errors import GiantstepError

    finished = load(output)
    rows = []
    for group in tqdm(chosen, desc="reference values", unit="group", disable=None):
        fingerprint = group.fingerprint(digits)
        entry = finished.get(group.name)
        if fresh or entry is None or entry.get("fingerprint") != fingerprint:
            try:
                values = compute(group, digits)
            except GiantstepError as failure:
                rows.append((group.name, "all", f"failed: {failure}", "", False))
                continue
            entry = {
                "fingerprint": fingerprint,
                "digits": digits,
                "source": group.source,
                "values": values,
            }
            finished[group.name] = entry
            store(output, finished)
        for name, stored in group.values.items():
            computed = entry["values"][name]
            rows.append(
                (group.name, name, computed, stored, agrees(computed, stored, group.digits))
            )
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the script."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--digits", type=int, default=30, metavar="N", help="digits [30]")
    parser.add_argument("--only", metavar="TEXT", help="groups whose name holds this text")
    parser.add_argument(
        "--output", type=Path, default=DEFAULT_OUTPUT, metavar="FILE",
        help="where results are kept [regenerated.json beside this script]",
    )  # fmt: skip
    parser.add_argument("--fresh", action="store_true", help="compute finished groups again")
    parser.add_argument("--list", action="store_true", help="name the groups and stop")
    given = parser.parse_args(arguments)
    if not 25 <= given.digits <= _MOST_DIGITS:
        parser.error(f"--digits must be from 25, those of the tables, to {_MOST_DIGITS}")
    chosen = [g for g in groups() if given.only is None or given.only in g.name]
    if not chosen:
        parser.error(f"no group has {given.only!r} in its name; --list names them")
    if given.list:
        print("\n".join(f"{g.name}: {len(g.values)} values" for g in chosen))
        return 0
    rows = regenerate(chosen, given.output, given.digits, fresh=given.fresh)
    width = max(len(group) + len(name) for group, name, *_ in rows) + 2
    for group, name, computed, stored, good in rows:
        verdict = "agrees" if good else "DEVIATES"
        print(f"{group + ', ' + name:<{width}}  {verdict:<8}  {computed}  stored {stored}")
    bad = sum(not row[-1] for row in rows)
    print(f"\n{len(rows) - bad} of {len(rows)} values agree; {given.output}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
