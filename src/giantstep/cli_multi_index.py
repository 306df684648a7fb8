"""``giantstep multi-index``: what the best estimators learn from labels of a few directions."""

from __future__ import annotations

import argparse
import math
from typing import TYPE_CHECKING, Any

from . import cli_options as opts
from .cli_files import deliver, output
from .cli_options import Command, nonnegative, option
from .pages import aligned

if TYPE_CHECKING:
    from .derivations.multi_index.model import MultiIndex

EPILOG = """\
Overlaps are squared cosines of the angle between estimate and teacher, to be compared with the
square of a giant step's alignment. AMP is the best efficient algorithm known; where it stays below
Bayes, the problem is hard.

  trivial   labels show the direction at first order: learned for every alpha
  easy      above the threshold alpha_c
  hard      not from samples proportional to the dimension

examples:
  giantstep multi-index abs
  giantstep multi-index sin --noise 0.1 --alpha 0.5,1,2
  giantstep multi-index "sign(x1) + sign(x2)"
  giantstep multi-index z --labels sign --noise 0.5 --alpha 1:4:4
"""


def run(arguments: argparse.Namespace) -> int:
    """Print thresholds, and overlaps of the estimators at each sample complexity."""
    from .derivations.multi_index.model import MultiIndex

    given = arguments.target, arguments.noise_variance, arguments.labels, arguments.flips
    model = MultiIndex(*given)
    # All is computed before anything is printed: an error leaves the output empty.
    results: list[Any] = [model.thresholds()]
    text = str(results[0])
    if arguments.alpha:
        solved, table = _table(model, list(arguments.alpha))
        results += solved
        text += f"\n\n{table}"
    return deliver(arguments, *results, text=text, title=f"Labels of {arguments.target}")


def _table(model: MultiIndex, alphas: list[float]) -> tuple[list[Any], str]:
    """Return what is known at each sample complexity, and a table of it."""
    if model.channel.directions > 1:
        solved = [model.solve(alpha=alpha) for alpha in alphas]
        rows = [
            [f"{x.alpha:g}", f"{x.overlap:.8g}", f"{x.amp_overlap:.8g}", _number(x.error), x.regime]
            for x in solved
        ]
        return solved, aligned(["α", "least overlap, Bayes", "AMP", "error, Bayes", "regime"], rows)
    ladders = [model.estimators(alpha=alpha) for alpha in alphas]
    rows = []
    for alpha, ladder in zip(alphas, ladders, strict=True):
        error = model.function_error(ladder.bayes)
        overlaps = (ladder.giant_step, ladder.ridge, ladder.amp, ladder.bayes)
        shown = [f"{alpha:g}", *(f"{q:.8g}" for q in overlaps)]
        rows.append([*shown, _number(error)])
    head = ["α", "giant step", "ridge", "AMP", "Bayes", "error, Bayes"]
    return ladders, aligned(head, rows)


def _number(error: float) -> str:
    return "–" if math.isnan(error) else f"{error:.8g}"


MULTI_INDEX = Command(
    "multi-index", "what the best estimators learn from labels of a few directions", run, (
        opts.TARGET.but(help="expression in z, or in x1, x2, x3"), opts.NOISE,
        option(
            "--labels", "how labels are made from the target", default="regression",
            choices=("regression", "sign", "probit", "logistic"),
        ),
        option(
            "--flips P", "share of labels of two values that are exchanged", nonnegative(0.1), 0.0
        ),
        opts.ALPHAS.but(help=f"{opts.ALPHAS.help}; without it thresholds alone"),
        *output(data=False),
    ), EPILOG,
)  # fmt: skip
