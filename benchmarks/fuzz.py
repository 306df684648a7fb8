"""Random inputs that nobody means: every answer, or a refusal of our own, within seconds.

``python benchmarks/fuzz.py values --count 200 --seconds 300`` calls public methods of the models
with odd values in one or two of their arguments; ``texts`` uses random expressions over the words
that the reader knows as activations, targets, losses and the like; ``commands`` runs random
command lines. A trial ends as an answer, as an error of ours, as a foreign error, as a hang, or as
an answer that holds NaN. The last three are faults: they are listed with the call that makes them,
and the exit code is 1. ``--only`` limits the trials to those whose name contains a text.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import inspect
import io
import math
import multiprocessing
import random
import shlex
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from multiprocessing.connection import Connection
from typing import Any

OUTCOMES = ("answer", "our error", "foreign error", "hang", "not a number")
_FAULTS = OUTCOMES[2:]
# What a first call may compile is no part of the trial.
_PREPARATION = 300.0
_FIRST_USE = 40


# ---------------------------------------------------------------------- trials in a worker process


@dataclass(frozen=True)
class Trial:
    """One call: which of the targets, and with what.

    Attributes
    ----------
    target : str
        Calls of one target share what has to be prepared.
    given : object
        Handed to the function that performs trials; has to be picklable.
    text : str
        The call as one types it.
    """

    target: str
    given: Any
    text: str


def run(
    trials: Iterable[Trial],
    perform: Callable[[Trial], Any],
    prepare: Callable[[str], None],
    *,
    count: int,
    seconds: float,
    limit: float,
) -> int:
    """Perform trials, print the outcomes as a table and the faults; return the exit code.

    Parameters
    ----------
    trials : iterable of Trial
    perform : callable
        Returns the answer or raises; runs in the worker process.
    prepare : callable
        Called in the worker before the first trial of a target, and not timed.
    count : int
        Trials at most.
    seconds : float
        After these no trial is begun.
    limit : float
        Seconds that a trial may take.
    """
    found: dict[str, Counter[str]] = {}
    faults: list[str] = []
    worker = _Worker(perform, prepare)
    begin = time.monotonic()
    for number, trial in enumerate(trials):
        if number >= count or time.monotonic() - begin > seconds:
            break
        outcome, what, took = worker.outcome(trial, limit)
        found.setdefault(trial.target, Counter())[outcome] += 1
        if outcome in _FAULTS:
            faults.append(f"{outcome} after {took:.1f} s: {trial.text}\n    {what}")
            print(faults[-1], flush=True)
    worker.close()
    _print_table(found)
    print(f"{len(faults)} faults in {sum(map(Counter.total, found.values()))} trials")
    return 1 if faults else 0


class _Worker:
    """A process that performs trials; a new one where the last did not come back."""

    def __init__(self, perform: Callable[[Trial], Any], prepare: Callable[[str], None]) -> None:
        self._functions = (perform, prepare)
        self._context = multiprocessing.get_context("spawn")
        self._start()

    def _start(self) -> None:
        self._pipe, other = self._context.Pipe()
        self._process = self._context.Process(
            target=_serve, args=(other, *self._functions), daemon=True
        )
        self._process.start()
        other.close()

    def outcome(self, trial: Trial, limit: float) -> tuple[str, str, float]:
        """Return the outcome, what it was, and the seconds that it took."""
        begin = time.monotonic()
        try:
            self._pipe.send(trial)
            if not self._pipe.poll(_PREPARATION):
                raise TimeoutError
            self._pipe.recv()  # prepared
            for patience in (_FIRST_USE * limit, limit):
                begin = time.monotonic()
                if not self._pipe.poll(patience):
                    raise TimeoutError
                outcome, what = self._pipe.recv()
                if time.monotonic() - begin <= limit:
                    break
                # It may have compiled a kernel, once: only the second time counts.
                self._pipe.send(trial)
                self._pipe.recv()
        except TimeoutError:
            outcome, what = "hang", f"more than {limit:g} s, the second time or for long"
            self._restart()
        except (EOFError, OSError):
            outcome, what = "foreign error", f"the process died: {self._process.exitcode}"
            self._restart()
        return outcome, what, time.monotonic() - begin

    def _restart(self) -> None:
        self.close()
        self._start()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()
        self._pipe.close()


def _serve(
    pipe: Connection, perform: Callable[[Trial], Any], prepare: Callable[[str], None]
) -> None:
    from giantstep.errors import GiantstepError

    warnings.simplefilter("ignore")
    prepared: set[str] = set()
    while True:
        trial = pipe.recv()
        if trial.target not in prepared:
            prepare(trial.target)
            prepared.add(trial.target)
        pipe.send("prepared")
        try:
            place = not_a_number(perform(trial))
            result = ("not a number", place) if place else ("answer", "")
        except GiantstepError as error:
            result = ("our error", str(error))
        except BaseException as error:
            result = ("foreign error", f"{type(error).__name__}: {error}")
        pipe.send(result)


def not_a_number(value: Any, place: str = "result") -> str:
    """Return where a result holds NaN; empty if nowhere. Fields that may are left out."""
    if isinstance(value, float | complex):
        return place if value != value else ""
    if isinstance(value, str | bytes | type) or value is None:
        return ""
    if hasattr(value, "data_vars"):
        value = {str(n): value[n].values for n in value.variables if "curvature" not in str(n)}
    if is_dataclass(value):
        value = {
            f.name: getattr(value, f.name)
            for f in fields(value)
            if not f.name.startswith("_") and f.name not in _MAY_BE_UNDEFINED
        }
    if isinstance(value, Mapping):
        found = (not_a_number(v, f"{place}[{k!r}]") for k, v in value.items())
        return next(filter(None, found), "")
    if getattr(value, "dtype", None) is not None:
        return place if value.dtype.kind in "fc" and (value != value).any() else ""
    if isinstance(value, list | tuple):
        return next(filter(None, (not_a_number(v, f"{place}[]") for v in value)), "")
    if hasattr(value, "context"):  # of mpmath
        return place if value != value else ""
    return ""


# Documented to be NaN where they have no meaning.
_MAY_BE_UNDEFINED = ("effective_ridge", "curvature", "model", "features", "slope_variance")


def _print_table(found: Mapping[str, Counter[str]]) -> None:
    wide = max(map(len, found), default=0)
    print(" " * wide, *(f"{name:>13}" for name in OUTCOMES))
    for target, counts in sorted(found.items()):
        print(f"{target:<{wide}}", *(f"{counts[name]:>13}" for name in OUTCOMES))
    total = sum(found.values(), Counter())
    print(f"{'all':<{wide}}", *(f"{total[name]:>13}" for name in OUTCOMES))


# ---------------------------------------------------------------------- odd values


def odd_values() -> dict[str, Any]:
    """Return values that nobody means, by the text that makes them."""
    import numpy as np

    texts = (
        "0", "-1", "1", "2", "0.0", "-0.0", "0.5", "math.nan", "math.inf", "-math.inf", "1e-300",
        "-1e-300", "5e-324", "1e-22", "1e-8", "1e8", "1e22", "1e154", "1e300", "1e308", "-1e308",
        "10**400", "-(10**400)", "10**18", "2**63", "3", "'2'", "''", "b'2'", "None", "True",
        "False", "1j", "2 + 0j", "object()", "Decimal('0.5')", "Fraction(1, 2)",
        "Fraction(10**400, 3)", "np.float64(0.5)", "np.float32(0.5)", "np.int64(3)",
        "np.float64('nan')", "np.bool_(True)", "np.array(0.5)", "np.array([0.5])", "np.array([])",
        "np.zeros((2, 2))", "np.ones((2, 2, 2))", "np.array(['a'])", "np.array([1j])",
        "np.array([0.5, np.nan])", "np.array([1, 10**30], dtype=object)", "[]", "()", "{}", "[1]",
        "[0.5, 1e300]", "[1e-300, 1]", "[1, [2]]", "(1,)", "(1, 2)", "(2, 1)", "(1e-300, 1e300)",
        "(0, math.inf)", "{1, 2}", "{'a': 1}", "range(0)", "'a' * 1000", "'x1'", "lambda: 1",
    )  # fmt: skip
    names = {"math": math, "np": np, "Decimal": Decimal, "Fraction": Fraction}
    return {text: eval(text, names) for text in texts}  # our own texts


def _calls(given: dict[str, dict[str, Any]]) -> Iterable[tuple[str, dict[str, Any]]]:
    return given.items()


_STEP = "gs.SpikedRandomFeatures('erf', 'sin', step_size=1.0, alpha0=5.0, noise_variance=0.1)"
_GIVEN = (
    "gs.SpikedRandomFeatures.from_parameters('erf', 'sin', spike_strength=1.2, bulk_variance=1.1, "
    "alignment=0.9)"
)
_ONE = "gs.OneGradientStep('erf', 'sin', 2.0, beta=1.5, step_size=2.0, noise_variance=0.1)"
_LETTERS = (
    "gs.VocabularyFeatures('erf', 'sin', letters=(1.0, -0.5), fractions=(0.5, 0.5), width=200)"
)
_HUBER = f"{_STEP}.with_loss('huber(0.5)')"
_SOLVE = {"alpha": 1.5, "ridge": 0.1}
_NETWORKS = {"dimension": 30, "seeds": 1, "progress": False}

# Callables with arguments that are right; the odd value takes the place of any of all arguments.
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "SpikedRandomFeatures": (
        "gs.SpikedRandomFeatures",
        {"student": "erf", "teacher": "sin", "step_size": 1.0, "alpha0": 5.0},
    ),
    "SpikedRandomFeatures.from_parameters": (
        "gs.SpikedRandomFeatures.from_parameters",
        {"student": "erf", "teacher": "sin", "spike_strength": 1.2, "bulk_variance": 1.1,
         "alignment": 0.9},
    ),
    "from_learning_rate": (
        "gs.SpikedRandomFeatures.from_learning_rate",
        {"student": "erf", "teacher": "sin", "learning_rate": 1.0},
    ),
    **{
        f"{kind} {name}": (f"{model}.{name}", given)
        for kind, model in (("step", _STEP), ("given", _GIVEN))
        for name, given in _calls({
            "solve": _SOLVE, "solve_many": _SOLVE, "curve": _SOLVE,
            "sensitivities": _SOLVE, "optimum": {"over": "ridge", "alpha": 1.5},
            "spectrum": {"alpha": 1.5},
            "realised_functions": {}, "expansion": {"name": "small_ridge", "alpha": 1.5},
        })
    },
    "optimum over the step": (f"{_STEP}.optimum", {"over": "step_size", **_SOLVE}),
    "optimum over both": (
        f"{_STEP}.optimum", {"over": ["ridge", "step_size"], "alpha": [1.5]},
    ),
    "certified_spike": (f"{_STEP}.certified_spike", {}),
    "certified_coefficients": (f"{_STEP}.certified_coefficients", {"node": 0.5}),
    "asymptotics": (f"{_STEP}.asymptotics", {}),
    "bounds": (f"{_STEP}.bounds", {}),
    "learned_bias": (f"{_STEP}.learned_bias", {**_SOLVE, "points": 11}),
    "with_loss": (f"{_STEP}.with_loss", {"loss": "huber(0.5)"}),
    "simulate": (f"{_STEP}.simulate", {**_NETWORKS, "alpha": [1.0]}),
    "realised": (f"{_STEP}.realised", {"dimension": 30, "alpha": [1.0], "ridge": 0.1}),
    "kernel.solve": (f"{_GIVEN}.kernel().solve", _SOLVE),
    "readout solve": (f"{_HUBER}.solve", _SOLVE),
    "readout solve_many": (f"{_HUBER}.solve_many", _SOLVE),
    "readout curve": (f"{_HUBER}.curve", _SOLVE),
    "readout simulate": (f"{_HUBER}.simulate", {**_NETWORKS, "alpha": [1.0]}),
    "letters": (
        "gs.VocabularyFeatures",
        {"student": "erf", "teacher": "sin", "letters": (1.0, -0.5), "fractions": (0.5, 0.5),
         "width": 200},
    ),
    "letters from_parameters": (
        "gs.VocabularyFeatures.from_parameters",
        {"student": "erf", "teacher": "sin", "spike_strengths": [1.2, -0.6],
         "bulk_variances": [1.1, 1.0], "fractions": [0.5, 0.5], "alignment": 0.9},
    ),
    "letters from_law": (
        "gs.VocabularyFeatures.from_law",
        {"student": "erf", "teacher": "sin", "law": "exp(-a**2)/sqrt(pi)", "support": (-5, 5),
         "nodes": 4, "width": 200},
    ),
    "letters solve": (f"{_LETTERS}.solve", _SOLVE),
    "letters curve": (f"{_LETTERS}.curve", _SOLVE),
    "letters conditional_coefficients": (
        f"{_LETTERS}.conditional_coefficients", {"kappa": [0.5]},
    ),
    "letters simulate": (f"{_LETTERS}.simulate", {**_NETWORKS, "alpha": [1.0]}),
    "letters learned_bias": (f"{_LETTERS}.learned_bias", {**_SOLVE, "points": 11}),
    "OneGradientStep": ("gs.OneGradientStep", {"student": "erf", "teacher": "sin", "alpha": 2.0}),
    **{
        f"one step {name}": (f"{_ONE}.{name}", given)
        for name, given in _calls({
            "risk": {"ridge": 0.1}, "ridgeless": {}, "curve": {"ridge": [0.1]},
            "optimum": {"over": "ridge"},
            "interpolation_peak": {"ridge": 0.1}, "limits": {"ridge": 0.1},
            "expansion": {"name": "large_alpha", "ridge": 0.1}, "equivalence": {},
            "several_steps": {"steps": 2}, "weight_spike": {},
            "weight_spike_curve": {"step_size": [1.0]}, "conjugate_kernel": {},
            "conditional_risk": {"weights": [[1.0]], "ridge": 0.1},
            "simulate": {**_NETWORKS, "ridge": 0.1},
            "simulate_spectra": {"dimension": 30, "seeds": 1},
            "large_steps": {},
        })
    },
    "kernel spectrum density": (f"{_ONE}.conjugate_kernel().density", {"x": 0.5}),
    "weight density": (f"{_ONE}.weight_spike().density", {"x": 0.5}),
    "spike_at_width": (f"{_ONE}.several_steps(2).spike_at_width", {"width": 100}),
    "lower solve": ("lowered().solve", {"a": 2.0}),
    "lower curve": ("lowered().curve", {"a": [2.0]}),
    "lower sensitivities": ("lowered().sensitivities", {"a": 2.0}),
    "lower optimum": ("lowered().optimum", {"over": "a", "of": "m", "bounds": (1.2, 2.0)}),
}  # fmt: skip
# With arguments of the models that are odd themselves, but right: extremes within the domains.
_FOLLOWED = {
    "gs.SpikedRandomFeatures": (".solve(alpha=1.5, ridge=0.1)",),
    "gs.SpikedRandomFeatures.from_parameters": (
        ".solve(alpha=1.5, ridge=0.1)",
        ".spectrum(alpha=1.5)",
    ),
    "gs.OneGradientStep": (
        ".risk(ridge=0.1)",
        ".ridgeless()",
        ".optimum()",
        ".conjugate_kernel()",
        ".weight_spike()",
        ".conjugate_kernel().to_dataset()",
        ".standing",
        ".several_steps(2).risk(ridge=0.1)",
    ),
    "gs.VocabularyFeatures": (".solve(alpha=1.5, ridge=0.1)",),
    "gs.VocabularyFeatures.from_parameters": (".solve(alpha=1.5, ridge=0.1, width=200)",),
}


@functools.cache
def lowered() -> Any:
    """A kernel of a system of one's own: a spike of ±1 entries in a noisy matrix."""
    import sympy as sp

    import giantstep as gs

    snr, m, q = sp.symbols("a m q", positive=True)
    z = sp.Symbol("z", real=True)
    spins = gs.GaussianExpectation(sp.log(sp.cosh(sp.sqrt(snr * q) * z + snr * m)), z)
    energy = spins + snr * (q**2 / 4 - q / 2 - m**2 / 2)
    free = gs.FreeEnergy(energy, (m, q), (), (snr,))
    return gs.lower(gs.SaddlePointSystem.from_free_energy(free, name="planted_spins"))


@functools.cache
def _callable(expression: str) -> Any:
    import giantstep as gs

    return eval(expression, {"gs": gs, "lowered": lowered})  # our own texts


@functools.cache
def _arguments(call: str) -> list[str]:
    """Return the names of the arguments of a call that may be odd."""
    expression, given = CALLS[call]
    found = inspect.signature(_callable(expression)).parameters.values()
    names = [p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    # What is no number, and what would write files.
    skipped = {"cache_folder", "executor", "ax", "progress", "out", "path"}
    return [*dict.fromkeys([*(n for n in names if n not in skipped), *given])]


def value_trials(seed: int, method: str) -> Iterable[Trial]:
    """Yield calls with one odd argument, sometimes two; names in a random order."""
    draw = random.Random(seed)
    calls = [name for name in CALLS if method in name]
    values = list(odd_values())
    while calls:
        for call in draw.sample(calls, len(calls)):
            names = _arguments(call)
            odd = draw.sample(names, min(len(names), draw.choice((1, 1, 1, 2))))
            expression, given = CALLS[call]
            follow = draw.choice(("", *_FOLLOWED.get(expression, ())))
            chosen = {name: draw.choice(values) for name in odd}
            shown = {**{k: repr(v) for k, v in given.items()}, **chosen}
            text = ", ".join(f"{k}={v}" for k, v in shown.items())
            yield Trial(call, (chosen, follow), f"{expression}({text}){follow}")


def prepare_call(call: str) -> None:
    """Make the call as it is right, so that all is derived and compiled."""
    expression, given = CALLS[call]
    if expression == "gs.OneGradientStep" or not call.endswith("conditional_risk"):
        found = _callable(expression)(**given)
        for follow in _FOLLOWED.get(expression, ()):
            eval(f"found{follow}", {"found": found})


def perform_call(trial: Trial) -> Any:
    """Make a call with odd values."""
    expression, given = CALLS[trial.target]
    chosen, follow = trial.given
    odd = odd_values()
    found = _callable(expression)(**{**given, **{k: odd[text] for k, text in chosen.items()}})
    return eval(f"found{follow}", {"found": found})


# ---------------------------------------------------------------------- random texts

_LEAVES = ("0", "1", "2", "-1", "1/2", "0.1", "pi", "E", "25", "1e6", "1e-9", "9**9", "10**400")
_EXPONENTS = ("0", "1", "2", "3", "-1", "1/2", "-2", "1/3", "7", "40", "-1/2", "9**9")
_ORDERS = ("0", "1", "2", "3", "8", "60", "-1", "1/2")
_DAMAGE = ("(", ")", "**", "'", '"', "__", ".", ",", ";", "\n", "\0", "lambda", "∞", "1e999", "[")
_SERIES = ("abs({x} - {k})", "relu({x} + {k})", "tanh({k}*{x})", "exp({x}/{k})", "sign({x} - {k})")


def random_text(draw: random.Random, variables: Sequence[str]) -> str:
    """Return a text over the words that the reader knows; one in twenty is damaged."""
    from giantstep.symbolic.expressions.expression_text import (
        FUNCTIONS,
        FUNCTIONS_OF_SEVERAL,
        PARTIAL_FUNCTIONS,
    )

    def expression(level: int) -> str:
        kind = draw.random()
        if level == 0 or kind < 0.12:
            return draw.choice([*[*variables] * 4, *_LEAVES])
        if kind < 0.5:
            operator = draw.choice(("+", "-", "*", "/", "**"))
            right = draw.choice(_EXPONENTS) if operator == "**" else expression(level - 1)
            return f"({expression(level - 1)}) {operator} ({right})"
        if kind < 0.58:
            return f"He({draw.choice(_ORDERS)}, {expression(level - 1)})"
        if kind < 0.68:
            name, (count, _) = draw.choice(list(FUNCTIONS_OF_SEVERAL.items()))
            return f"{name}({', '.join(expression(level - 1) for _ in range(count))})"
        return f"{draw.choice([*FUNCTIONS, *PARTIAL_FUNCTIONS])}({expression(level - 1)})"

    shape = draw.random()
    if shape < 0.1:  # many terms or factors of one kind
        form, count = draw.choice(_SERIES), draw.choice((3, 12, 40, 100))
        join = draw.choice((" + ", "*", " - "))
        text = join.join(form.format(x=draw.choice(variables), k=k) for k in range(count))
    elif shape < 0.14:  # many levels
        name, count = draw.choice([*FUNCTIONS]), draw.choice((2, 3, 5, 20))
        text = f"{name}(" * count + draw.choice(variables) + ")" * count
    else:
        text = expression(draw.randint(1, 4))
    if draw.random() < 0.05:
        at = draw.randrange(len(text) + 1)
        text = text[:at] + draw.choice(_DAMAGE) + text[at + draw.randint(0, 1) :]
    return text


_ONE_VARIABLE, _INPUTS = ("z",), ("x1", "x2", "x3")

# What a text is used as: the names that may stand in it, and the call that takes it.
TEXT_USES: dict[str, tuple[Sequence[str], str]] = {
    "activation": (_ONE_VARIABLE, "gs.activation(text)"),
    "hermite_coefficients": (_ONE_VARIABLE, "gs.hermite_coefficients(text, 3)"),
    "information_exponent": (_ONE_VARIABLE, "gs.information_exponent(text)"),
    "expect": (_ONE_VARIABLE, "gs.expect(text, z)"),
    "expect of a pair": (("u", "v"), "gs.expect(text, gs.correlated_pair(u, v, third))"),
    "dual_activation": (_ONE_VARIABLE, "gs.dual_activation(text, u, order=4)"),
    "target": (_INPUTS, "gs.target(text)"),
    "leap_index": (_INPUTS, "gs.leap_index(text)"),
    "staircase": (_INPUTS, "gs.staircase(text)"),
    "project": (_INPUTS, "gs.project(text, onto=[[1, 0, 0]])"),
    "gradient_expansion": (_INPUTS, "gs.gradient_expansion('relu', text)"),
    "student": (
        _ONE_VARIABLE,
        "gs.SpikedRandomFeatures.from_parameters(text, 'erf', spike_strength=1, bulk_variance=1, "
        "alignment=0.9)",
    ),
    "teacher": (
        _ONE_VARIABLE, "gs.OneGradientStep('erf', text, alpha=2, beta=1.5, step_size=1)",
    ),
    "loss": (
        ("y", "x"), "gs.SpikedRandomFeatures('erf', 'erf', step_size=1, alpha0=4).with_loss(text)",
    ),
}  # fmt: skip


def text_trials(seed: int, only: str) -> Iterator[Trial]:
    """Yield uses of random texts."""
    draw = random.Random(seed)
    uses = [use for use in TEXT_USES if only in use]
    while uses:
        use = draw.choice(uses)
        text = random_text(draw, TEXT_USES[use][0])
        yield Trial(use, text, f"{use}: {text!r}")


def perform_text(trial: Trial) -> None:
    """Use a text. The call is ours; the text is only handed to it."""
    import sympy as sp

    import giantstep as gs

    u, v, z = sp.symbols("u v z", real=True)
    names = {"gs": gs, "u": u, "v": v, "z": z, "third": sp.Rational(1, 3), "text": trial.given}
    eval(TEXT_USES[trial.target][1], names)


# ---------------------------------------------------------------------- random command lines

_WORDS = (
    "0", "1", "-1", "2", "0.5", "1e-300", "1e308", "nan", "inf", "-inf", "1e999", "", " ", "1,2",
    "0.5:4:3", "1:0:3", "0.1:10:100000000000", "=", "x", "tanh", "erf", "sign(z)", "z", "x1*x2",
    "x1 + x1*x2", "ridge=0.1:1:3", "None", "10**400", "\u2081", "--", "a:positive", "1,0;0,1",
)  # fmt: skip
_WRITING = {"--out", "--plot", "--store"}
_FILES = ("a.png", "a.nc", "a.html", "a.json", "a", "b/c.nc")
# Simulations and proofs have tests of their own; here they would only take time.
_LONG = {"--simulate", "--certify", "--certified", "--slow", "--joint", "--help", "--version"}


def _commands(
    parser: argparse.ArgumentParser, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    nested = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not nested:
        yield path, parser
    for action in nested:
        for name, inner in action.choices.items():
            yield from _commands(inner, (*path, name))


def random_command(
    draw: random.Random, path: Sequence[str], parser: argparse.ArgumentParser
) -> list[str]:
    """Return the words of a command line with some of its options, their values odd or usual."""
    words = list(path)
    for action in parser._actions:
        flags = [flag for flag in action.option_strings if flag.startswith("--")]
        if set(flags) & _LONG or (flags and draw.random() > 0.15):
            continue
        words += flags[-1:]
        if flags and action.nargs == 0:
            continue
        if action.choices and draw.random() < 0.9:
            words.append(str(draw.choice(list(action.choices))))
        elif set(flags) & _WRITING:
            words.append(draw.choice(_FILES))
        elif not flags and draw.random() < 0.8:
            words.append(random_text(draw, draw.choice((_ONE_VARIABLE, _INPUTS))))
        else:
            words.append(draw.choice(_WORDS))
    return words


def command_trials(seed: int, only: str) -> Iterator[Trial]:
    """Yield random command lines; ``verify`` is none of them, it recomputes everything."""
    from giantstep.cli import build_parser

    draw = random.Random(seed)
    commands = [c for c in _commands(build_parser()) if only in " ".join(c[0])]
    commands = [c for c in commands if c[0] != ("verify",)]
    while commands:
        path, parser = draw.choice(commands)
        words = random_command(draw, path, parser)
        yield Trial(" ".join(path), words, f"giantstep {shlex.join(words)}")


def perform_command(trial: Trial) -> None:
    """Run a command in a folder of its own."""
    from giantstep.__main__ import main as run_giantstep
    from giantstep.errors import GiantstepError

    said = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stderr(said),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        code = run_giantstep(trial.given)
    if code == 2 and said.getvalue().strip():
        raise GiantstepError(said.getvalue())
    if code != 0:
        raise RuntimeError(f"exit code {code}, {said.getvalue()!r}")


def nothing_to_prepare(target: str) -> None:
    """Prepare nothing: what is compiled at first is tried a second time."""


KINDS: dict[
    str,
    tuple[
        str,
        Callable[[int, str], Iterable[Trial]],
        Callable[[Trial], Any],
        Callable[[str], None],
    ],
] = {
    "values": (
        "odd values in the arguments of public methods",
        value_trials, perform_call, prepare_call,
    ),
    "texts": (
        "random expressions as activations, targets, losses",
        text_trials, perform_text, nothing_to_prepare,
    ),
    "commands": (
        "random command lines", command_trials, perform_command, nothing_to_prepare,
    ),
}  # fmt: skip


def main() -> int:
    """Run the fuzzer that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="kind", required=True)
    for kind, (summary, *_) in KINDS.items():
        command = commands.add_parser(kind, help=summary, description=summary)
        command.add_argument("--only", default="", help="only what has this in its name")
        command.add_argument("--count", type=int, default=500, help="trials at most [%(default)s]")
        command.add_argument(
            "--seconds", type=float, default=600, help="begin none after these [%(default)s]"
        )
        command.add_argument("--seed", type=int, default=0, help="[%(default)s]")
        command.add_argument(
            "--limit", type=float, default=5, help="seconds for one trial [%(default)s]"
        )
    given = parser.parse_args()
    _, trials, perform, prepare = KINDS[given.kind]
    return run(
        trials(given.seed, given.only), perform, prepare,
        count=given.count, seconds=given.seconds, limit=given.limit,
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
