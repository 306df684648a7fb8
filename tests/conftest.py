"""Settings of the whole test run: a cache folder of its own, reproducible random tests."""

# SymPy reads the size of its caches when it is imported. Tests go from one system to the next and
# back: a cache of the usual thousand entries forgets what the next test asks for again.
# NumPy and SciPy read how many threads they may use. Workers of a run share the processors: threads
# of one that multiply small matrices wait for those of the other, for most of the time.
import os

os.environ.setdefault("SYMPY_CACHE_SIZE", "10000")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gc
import sys
from pathlib import Path

import pytest
import threadpoolctl
from hypothesis import settings

from giantstep.__main__ import main

settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, max_examples=30)
settings.load_profile("ci" if os.environ.get("CI") else "local")

# Examples in docstrings that compile or differentiate a model of their own, for seconds each.
_SLOW_EXAMPLES = (
    *("convex.readout.ConvexReadout", "step_bounds.bounds_over_step"),
    "step_bounds.perfect_learning",
)


# A plugin may have loaded NumPy before the environment was set.
threadpoolctl.threadpool_limits(1, user_api="blas")

# The garbage collector spends a third of the time of collecting tests on objects that all stay,
# and looks through them again and again while the tests run.
gc.disable()


def pytest_collection_finish() -> None:
    """From here on garbage is collected, but what was imported and collected is left alone."""
    gc.freeze()
    # Expressions are in caches and no circles: to look for circles among them rarely is enough.
    gc.set_threshold(100_000, 10, 10)
    gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark slow examples as the slow tests are marked: a docstring cannot say so itself."""
    for item in items:
        if isinstance(item, pytest.DoctestItem) and item.name.endswith(_SLOW_EXAMPLES):
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give each file to one worker: what its tests share is derived and computed once."""
    from xdist.scheduler import LoadFileScheduling

    return LoadFileScheduling(config, log)


@pytest.fixture(scope="session", autouse=True)
def session_cache(tmp_path_factory: pytest.TempPathFactory):
    """Start from an empty cache and leave the user's alone, in subprocesses too.

    Several runs on the same code share a folder if GIANTSTEP_TEST_CACHE names one.
    """
    base = tmp_path_factory.getbasetemp()
    # Under xdist each worker's folder lies in that of the session: share what one has compiled.
    folder = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "giantstep-cache"
    folder = Path(os.environ.get("GIANTSTEP_TEST_CACHE", folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GIANTSTEP_CACHE_DIR", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def declared_names_are_forgotten():
    """What a test declares, no other test knows."""
    yield
    module = sys.modules.get("giantstep.symbolic.expressions.activations")
    for name in [*module._DECLARED] if module else ():
        for table in (module._DECLARED, module._KNOWN, module.FUNCTIONS):
            del table[name]


@pytest.fixture(autouse=True)
def figures_are_closed():
    """Where one test has imported pyplot, all figures that follow are pyplot's and stay open."""
    yield
    if (plt := sys.modules.get("matplotlib.pyplot")) is not None:
        plt.close("all")


@pytest.fixture
def flint():
    """The module python-flint; what asks for it is skipped where it is not installed."""
    return pytest.importorskip("flint")


@pytest.fixture
def without_flint(monkeypatch):
    """An environment in which python-flint is not installed."""
    monkeypatch.setitem(sys.modules, "flint", None)


@pytest.fixture
def run(capsys):
    """Run one command in this process: exit code, output, errors."""

    def run_main(*arguments):
        code = main([str(a) for a in arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run_main
