"""Arguments of the exact commands: Hermite coefficients, expectations, gradients, ledgers."""

from __future__ import annotations

import argparse

from .cli_layout import later
from .cli_numbers import digits, whole

HERMITE_EPILOG = """\
conventions:
  He_k are the probabilists' Hermite polynomials, z is standard Gaussian, and
  mu_k = E[f(z) He_k(z)] is divided by neither k! nor its root: f = sum_k mu_k/k! He_k.

Coefficients are exact; 0 means zero by parity or by algebra. What has no closed form (tanh,
sigmoid, softplus, swish) is printed as E_z[...] with digits from quadrature, or, with
--certified, as a proven interval (needs python-flint: pip install "giantstep[flint]").

examples:
  giantstep hermite "erf(z)" --order 9
  giantstep hermite gelu --closed-form
  giantstep hermite "erf(a*z + b)" --parameter a:positive --parameter b:real --closed-form
  giantstep hermite tanh --order 11 --certified
"""

EXPECT_EPILOG = """\
Without --joint, EXPR is a function of one standard Gaussian variable z. With --joint RHO it is a
function of two, u and v, with correlation RHO: a name, which is declared real, a number, or an
expression in names declared by --parameter.

examples:
  giantstep expect "erf(z)**2"
  giantstep expect "relu(a*z + b)" --parameter a:positive --parameter b:real
  giantstep expect "erf(u)*erf(v)" --joint rho
  giantstep expect "relu(u)*relu(v)" --joint rho --latex
  giantstep expect "erf(u)*relu(v)" --joint 1/2 --variances 2,3 --means 0,1
  giantstep expect "sin(u)*sin(v)" --joint "cos(t)" --parameter t:real
"""

GRADIENT_EPILOG = """\
The population gradient of a neuron s(w.x) on a target f is
  G(w) = E[f(x) s'(w.x) x] = sum_k mu_(k+1)/k! C_(k+1)[w^k, .] + w sum_k mu_(k+2)/k! C_k[w^k]
with mu_k the Hermite coefficients of the student and C_k = E[grad^k f] (Damian, Lee and
Soltanolkotabi, arXiv 2206.15144). Each term is printed with its order in the dimension d for w
uniform on the unit sphere. STUDENT mu keeps the coefficients mu[k] symbolic.

examples:
  giantstep gradient relu "x1*x2 + He(3, x1)"
  giantstep gradient relu "1 + x1 + x1*x2" --remove 0,1
  giantstep gradient erf "tanh(x1) + x2*relu(x1)" --order 3
  giantstep gradient mu "x1 + x1*x2" --latex
"""

COMPLEXITY_EPILOG = """\
Rows say what they rest on: theorem, heuristic, or derived here, with the source.

examples:
  giantstep complexity "x1*x2 + x1**2"
  giantstep complexity "He(3, x1)" --student tanh
"""


def add_hermite(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``giantstep hermite``."""
    parser.set_defaults(run=later("cli_exact_commands", "hermite"))
    parser.add_argument("expression", metavar="EXPR", help="activation, or expression in z")
    parser.add_argument(
        "--order", type=whole("--order", 0, 9), default=6, metavar="K", help="highest order [6]"
    )
    parser.add_argument(
        "--closed-form", action="store_true", help="print mu_k for symbolic k, with its parity"
    )
    parser.add_argument(
        "--certified", action="store_true", help="proven intervals, by ball arithmetic"
    )
    _add_parameters(parser)
    _add_output(parser)


def add_expect(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``giantstep expect``."""
    parser.set_defaults(run=later("cli_exact_commands", "expect"))
    parser.add_argument("expression", metavar="EXPR", help="expression in z, or in u and v")
    parser.add_argument(
        "--joint", metavar="RHO", help="correlation of u and v: name, number or expression"
    )
    parser.add_argument("--variances", metavar="A,B", help="variances of u and v [1,1]")
    parser.add_argument("--means", metavar="A,B", help="means of u and v [0,0]")
    _add_parameters(parser)
    _add_output(parser)


def add_gradient(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``giantstep gradient``."""
    parser.set_defaults(run=later("cli_exact_commands", "gradient"))
    parser.add_argument("student", metavar="STUDENT", help="activation, expression in z, or mu")
    parser.add_argument("target", metavar="TARGET", help="expression in x1, x2, ...")
    parser.add_argument(
        "--order",
        type=whole("--order", 0, 4),
        metavar="K",
        help="largest number of contractions with w [all for polynomial targets, else 4]",
    )
    parser.add_argument(
        "--norm", default="1", metavar="R", help="length of w: number, or a name for a symbol [1]"
    )
    parser.add_argument(
        "--remove",
        default="",
        metavar="LIST",
        help="Hermite degrees taken out of the labels; 0,1 is the preprocessing of Damian et al.",
    )
    parser.add_argument("--latex", action="store_true", help="print LaTeX, too")


def add_complexity(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``giantstep complexity``."""
    parser.set_defaults(run=later("cli_exact_commands", "complexity"))
    parser.add_argument("target", metavar="TARGET", help="expression in x1, x2, ...")
    parser.add_argument("--student", default="relu", metavar="F", help="activation [relu]")
    parser.add_argument("--latex", action="store_true", help="print LaTeX, too")


def _add_parameters(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--parameter",
        action="append",
        default=[],
        metavar="NAME:KIND",
        help="declare a parameter; KIND is real, positive, nonnegative, integer, ...",
    )


def _add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--digits", type=digits(20), default=20, metavar="N", help="[20]")
    parser.add_argument("--latex", action="store_true", help="print LaTeX, too")
