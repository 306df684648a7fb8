"""``giantstep conjecture``: a statement over ranges, proved, refuted or supported."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from . import cli_options as opts
from .cli_files import deliver, output
from .cli_options import Command, Group, option, whole
from .errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping

EPILOG = """\
STATEMENT is
  a comparison with ==, <, <=, > or >=    "risk_trained <= risk_initial"
  increasing(Q, x), decreasing(Q, x)      "decreasing(improvement, noise_variance)"
    (never turns back; with strict=True never stands still)
  positive(Q), nonnegative(Q), independent(Q, x), equal(Q, R), and several with "and".
Q is an expression, as elsewhere, in the quantities of --over and in outputs of the --model, whose
parameters may be given: "risk_trained(step_size=2) <= risk_trained(step_size=1)"; E_z[...] is
the average over a standard normal variable z.

--over NAME=LOW:HIGH    a range, ends included; they may be inf
--over NAME=VALUE       held at a number; a penalty may be "best", that with the smallest error
--over NAME=positive    or real, nonnegative
                        "[0, 2)" leaves an end out
--over f=targets        random targets: --dimension, --degree, --terms. The statement then compares
                        leaps(f).coordinate, .isotropic, .generative and .leap_index,
                        staircase(f).steps, .dimension and .saturates, dimension(f), degree(f).
                        Several are drawn apart; f + 2*g and f*g are targets, too.
--over f="x1*x2"        a target that is held

--model KIND with --set NAME=VALUE says whose outputs the statement names:
  one-step    OneGradientStep: risk_initial, risk_trained, improvement, bias_trained, ...
  srf         SpikedRandomFeatures: test_error, training_error, m, q1, ...

verdicts:
  proved      by algebra, positive terms, Sturm's theorem, signs of derivatives, intervals on a
              halved box, or fewer variables; the certificate is computed again before it is
              printed
  refuted     at an exact point, both sides proven apart; with the line of Python that shows it
  supported   by a search, which is no proof
  undecided   and what stood in the way

exit codes: 0 proved or supported, 1 refuted, 2 bad input, 3 undecided.

examples:
  giantstep conjecture "x**4 + 1 >= 2*x**2" --over x=real
  giantstep conjecture "a/b < 1" --over a=positive --over b=positive --where "a < b"
  giantstep conjecture "decreasing(improvement, noise_variance)" --model one-step \\
      --set student=erf --set teacher=erf --set alpha=2 --over noise_variance=0:2 --over ridge=0.1
  giantstep conjecture "increasing(improvement, alpha)" --model one-step --set student=erf \\
      --set teacher=erf --set alpha=2 --over alpha=0.25:2 --over ridge=0.1
  giantstep conjecture "leaps(f).coordinate == leaps(f).isotropic" --over f=targets
"""

MODELS = {"one-step": "OneGradientStep", "srf": "SpikedRandomFeatures"}
TARGETS = "targets"


def run(arguments: argparse.Namespace) -> int:
    """Print the verdict."""
    import giantstep

    from .derivations.conjectures.conjecture import Verdict, conjecture

    over: dict[str, Any] = dict(read_pair("--over", text, "x=0:2") for text in arguments.over)
    sizes = {one.dest: getattr(arguments, one.dest) for one in _SIZES}
    given = {name: value for name, value in sizes.items() if value is not None}
    about_targets = TARGETS in over.values()
    if given and not about_targets:
        raise ParameterError(f"--{next(iter(given))} belongs to random targets: --over f=targets")
    over = {
        name: giantstep.TargetFamily(**given) if value == TARGETS else value
        for name, value in over.items()
    }
    result = conjecture(
        arguments.statement, over, arguments.where, of=_model(arguments), tries=arguments.tries,
        seed=arguments.seed, method=arguments.method, store=arguments.store,
    )  # fmt: skip
    if result.proved and not result.check():
        raise ParameterError("the certificate of the proof does not hold; please report this")
    text = f"{result}\n\n{result.latex()}" if arguments.latex else str(result)
    deliver(
        arguments, result, text=text, title=arguments.statement,
        document=json.loads(result.to_json()),
    )  # fmt: skip
    return {Verdict.REFUTED: 1, Verdict.UNDECIDED: 3}.get(result.verdict, 0)


def read_pair(flag: str, text: str, example: str) -> tuple[str, str]:
    """Return name and value of ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not (equals and name.strip().isidentifier() and value.strip()):
        raise ParameterError(f"{flag} must be NAME=VALUE, such as {flag} {example}, got {text!r}")
    return name.strip(), value.strip()


def _model(arguments: argparse.Namespace) -> Any:
    import giantstep

    values: Mapping[str, str] = dict(read_pair("--set", text, "alpha=2") for text in arguments.set)
    if arguments.model is None:
        if values:
            raise ParameterError("--set belongs to --model; give --model one-step or srf")
        return None
    make = getattr(giantstep, MODELS[arguments.model])
    try:
        return make(**{name: read_argument(value) for name, value in values.items()})
    except TypeError as error:
        raise ParameterError(f"--set: {str(error).partition('() ')[2] or error}") from None


def read_argument(text: str) -> Any:
    """Return a number where the text is one; names and expressions stay texts."""
    try:
        return float(text)
    except ValueError:
        return text


_SIZES = (
    option("--dimension N", "largest number of coordinates [4]", whole(1, 3)),
    option("--degree N", "highest degree [4]", whole(1, 3)),
    option("--terms N", "largest number of Hermite terms [4]", whole(1, 3)),
)
CONJECTURE = Command(
    "conjecture", "prove or refute a statement over ranges of its quantities", run, (
        option("STATEMENT", "what is conjectured; see below"),
        option(
            "--over NAME=RANGE", "range, number or kind of a quantity; once for each",
            action="append", required=True,
        ),
        option("--where CONDITION", "such as 'alpha > beta'", default=[], action="append"),
        Group("whose outputs it is about", (
            option("--model", "model with outputs", choices=sorted(MODELS)),
            option(
                "--set NAME=VALUE", "argument of the model, such as student=erf or alpha=2",
                default=[], action="append",
            ),
        )),
        Group("random targets, --over f=targets", _SIZES),
        Group("search", (
            option("--method", "nothing but this [all]", choices=(
                "identity", "positive terms", "sturm", "derivatives", "branch and bound",
                "elimination", "search",
            )),
            option("--tries N", "points", whole(0, 500)), opts.SEED,
            opts.STORE.but(help="finished blocks, to resume"),
            *output(figure=False, data=False), opts.LATEX,
        )),
    ), EPILOG, flags=None,
)  # fmt: skip
