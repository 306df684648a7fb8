"""``giantstep curve`` and ``giantstep solve``: their arguments."""

from __future__ import annotations

import argparse

from .cli_layout import later
from .cli_model import add_model
from .cli_numbers import digits, positive, sample_complexities, whole

CURVE_EPILOG = """\
conventions:
  d inputs, p = BETA d neurons, n = ALPHA d samples for the readout, n0 = ALPHA0 d for the step.
  step     every row moves by STEP_SIZE times its gradient (1/n0) sum (y - f0) sigma'(w.x) x;
           in the convention W <- W + eta sqrt(p) G of the papers, STEP_SIZE = eta/sqrt(p).
           0 takes no step: plain random features.
  rate     --learning-rate R in one of three conventions, which agree at BETA = 1:
             sqrt-width      W <- W + eta sqrt(p) G, eta = R sqrt(p): STEP_SIZE = R
             sqrt-dimension  W <- W + eta sqrt(p) G, eta = R sqrt(d): STEP_SIZE = R/sqrt(BETA)
             dimension       W <- W + eta G,         eta = R d:       STEP_SIZE = R/BETA
  width    the theory is the limit of many neurons; --width P adds what the ridge penalty takes
           for the mean of P readout weights, the correction of order 1/P that matters.
  ridge    the readout minimises sum (y - phi.w/sqrt(p))^2 + RIDGE |w|^2.
  noise    variance of the Gaussian label noise, in both training sets.
  errors   test error against the noise-free target on fresh inputs.

files:
  --out curve.html writes curve.html (report), curve.png and curve.pdf (figure), curve.nc (theory)
  and, with --simulate, curve-simulation.nc (every network). Finished networks are kept at once
  in the folder .giantstep-simulations next to it (--store chooses another one): the same command
  resumes after an interruption, and more --seeds extend a run.

examples:
  giantstep curve --student tanh --teacher sin --simulate
  giantstep curve --student tanh --teacher sin --alpha 0.1:10:40 --ridge 0.01 --table-only
  giantstep curve --student relu --teacher tanh --allow-non-odd --noise 0.25 --out relu.html
"""

SOLVE_EPILOG = """\
--digits N   N digits, up to 1000, by mpmath; only digits that hold are printed.
--certify    a proof by interval arithmetic (python-flint): the equations have exactly one solution
             in a small box, and training and test error lie in the intervals that are printed;
             with --digits N as narrow as N digits [15]. It is about the equations of the theory,
             their integrals included; that they describe networks rests on the replica method.
             Where there is no proof there is no interval: the command says why, exit code 2.
--out FILE   with --certify: the intervals, exactly, and what they rest on, as .json.

examples:
  giantstep solve --student tanh --teacher sin --alpha 2 --ridge 0.1
  giantstep solve --student tanh --teacher sin --alpha 2 --ridge 0.1 --digits 50
  giantstep solve --student erf --teacher erf --alpha 1 --ridge 1e-3 --certify --out proof.json
"""


def add_curve(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``giantstep curve``."""
    add_model(parser)
    parser.add_argument(
        "--alpha",
        type=sample_complexities("--alpha"),
        metavar="LIST",
        help="sample complexities n/d: 0.5,1,2 or START:STOP:COUNT [0.2:3:15]",
    )
    group = parser.add_argument_group("simulation")
    group.add_argument(
        "--simulate", action="store_true", help="train networks of finite size and compare"
    )
    group.add_argument(
        "--dimension",
        type=whole("--dimension", 1, 1000),
        default=1000,
        metavar="D",
        help="input dimension d [1000]",
    )
    group.add_argument(
        "--seeds", type=whole("--seeds", 2, 10), default=10, metavar="N", help="networks [10]"
    )
    group.add_argument(
        "--seed",
        type=whole("--seed", 0, 0),
        default=0,
        metavar="N",
        help="entropy of the run [0]; the same numbers for any number of workers",
    )
    group.add_argument(
        "--workers", type=whole("--workers", 1, 2), metavar="N", help="threads [one per processor]"
    )
    group.add_argument(
        "--store",
        metavar="FOLDER",
        help="where finished networks are kept [.giantstep-simulations next to --out]",
    )
    group = parser.add_argument_group("output")
    group.add_argument(
        "--out", default="curve.html", metavar="FILE", help="the report, .html [curve.html]"
    )
    group.add_argument("--table-only", action="store_true", help="print the table, write no files")
    group.add_argument("--latex", action="store_true", help="print the equations in LaTeX, too")
    parser.set_defaults(run=later("cli_curve", "curve"))


def add_solve(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``giantstep solve``."""
    add_model(parser)
    parser.add_argument(
        "--alpha",
        type=positive("--alpha", 2),
        default=2.0,
        metavar="A",
        help="sample complexity n/d of the readout [2]",
    )
    parser.add_argument(
        "--digits", type=digits(50), metavar="N", help="refine to N digits, up to 1000"
    )
    parser.add_argument(
        "--certify", action="store_true", help="prove intervals of training and test error"
    )
    parser.add_argument(
        "--out", metavar="FILE", help="write the proven intervals, .json; with --certify"
    )
    parser.set_defaults(run=later("cli_commands", "solve"))
