"""What can go wrong, one class for each thing the user can do about it.

Every error of giantstep derives from :class:`GiantstepError` and from the builtin exception that
fits, so both ``except GiantstepError`` and ``except ValueError`` work. The first line of each
message says what was asked and why it cannot be; further lines say what would work.
"""


class GiantstepError(Exception):
    """Base class of all errors that giantstep raises on purpose."""


class ExpressionError(GiantstepError, ValueError):
    """A text is not an expression that giantstep reads. Correct the text."""


class ParameterError(GiantstepError, ValueError):
    """An argument is outside its range or of the wrong kind. Correct the argument."""


class AssumptionError(GiantstepError, ValueError):
    """An assumption of a theorem does not hold for this input. The message names it."""


class ClosedFormNotFoundError(GiantstepError, NotImplementedError):
    """No rule gives a closed form. Use the unevaluated node and evaluate it numerically."""


class UnsupportedExpressionError(GiantstepError, ValueError):
    """An expression holds something that the chosen analysis or target does not know."""


class EmissionError(GiantstepError, ValueError):
    """Source code for a kernel cannot be written. The message names the expression."""


class StructureError(GiantstepError, ValueError):
    """Equations do not determine their unknowns. The message names which ones."""


class UndecidedError(GiantstepError, ArithmeticError):
    """Whether an exact expression is zero could not be decided; it is never guessed."""


class CacheError(GiantstepError, OSError):
    """The folder for generated kernels cannot be used. Choose another one."""


class MissingDependencyError(GiantstepError, ImportError):
    """An optional package is needed. The message says what to install."""


class ApproximationWarning(UserWarning):
    """A theory approximates what it stands for worse than usual. The message says how well."""


class ConvergenceError(GiantstepError, RuntimeError):
    """An iteration ended before its tolerance was met.

    Attributes
    ----------
    state : object
        The last iterate, for inspection or as a new starting point; None if there is none.
    residual : float
        The relative residual at `state`.
    """

    def __init__(self, message: str, state: object = None, residual: float = float("nan")) -> None:
        super().__init__(message)
        self.state = state
        self.residual = residual


class CertificationError(GiantstepError, ArithmeticError):
    """A proof by intervals did not succeed, so there is no proven interval.

    It says nothing about the number: the model may be outside of what can be proven, the working
    precision too low, or the solution not isolated, as at a bifurcation.
    """
