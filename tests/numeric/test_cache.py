"""The file cache: private, atomic, and never believing what it reads."""

import hashlib
import io
import os
import pickle
import py_compile
import re
import signal
import stat
import subprocess
import sys
import threading
import time
import types

import pytest

from giantstep.derivations.kernels.code import deriving
from giantstep.errors import CacheError, GiantstepError, ParameterError
from giantstep.numeric import cache as cache_module
from giantstep.numeric.cache import FileCache, cache_folder, fingerprint
from giantstep.one_thread import ONE_THREAD

MARK = b"\ngiantstep sha256 "  # ends numba's part of a binary

PLAIN = "def answer():\n    return 42\n"

KERNEL = """\
import math

from numba import njit


@njit(cache=True)
def inner(x):
    return math.erf(x) + 1.0


@njit(cache=True)
def outer(x):
    return 2.0 * inner(x)
"""

# A new process, because a module is loaded only once in each. Prints the value and the hits.
RUN_KERNEL = """\
import sys
from giantstep.numeric.cache import FileCache
module = FileCache(sys.argv[1]).load_module("kernel", sys.argv[2])
print(module.outer(0.0), sum(module.outer.stats.cache_hits.values()))
"""


def start(code, *arguments):
    # Uninstalled checkouts find the package through this process's path.
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def run(code, *arguments):
    process = start(code, *arguments)
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return output.split()


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def files(tmp_path):
    return FileCache(tmp_path / "a folder with spaces" / "cache")


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """Bytes of all files after one run of the kernel, to be damaged in copies."""
    folder = tmp_path_factory.mktemp("compiled")
    assert run(RUN_KERNEL, folder, KERNEL) == ["2.0", "0"]
    assert run(RUN_KERNEL, folder, KERNEL) == ["2.0", "1"]
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}


def test_folder_comes_from_argument_then_environment_then_platform(tmp_path, monkeypatch):
    monkeypatch.setenv("GIANTSTEP_CACHE_DIR", str(tmp_path / "environment"))
    assert cache_folder(tmp_path / "argument") == tmp_path / "argument"
    assert cache_folder() == tmp_path / "environment"
    monkeypatch.setenv("GIANTSTEP_CACHE_DIR", "")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: str(tmp_path / "platform"))
    assert cache_folder() == tmp_path / "platform"
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: "~/.cache/giantstep")
    with pytest.raises(CacheError, match="no home directory"):
        cache_folder()


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_folder_and_files_are_private(files):
    assert mode_of(files.folder) == 0o700
    assert mode_of(files.store_source("plain", PLAIN)) == 0o600
    assert mode_of(files.store_json("key", {})) == 0o600


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
@pytest.mark.parametrize("mode", [0o770, 0o777, 0o1777])
def test_folder_that_others_can_write_holds_a_private_one(tmp_path, mode):
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(mode)
    private = cache_folder(shared)
    assert private.parent == shared
    assert mode_of(private) == 0o700
    assert mode_of(shared) == mode
    private.chmod(0o777)
    with pytest.raises(CacheError, match="other users can write"):
        cache_folder(shared)


def test_folder_below_a_file_is_refused_in_one_line(tmp_path):
    # Root may write anywhere, but not below a regular file.
    obstacle = tmp_path / "file"
    obstacle.touch()
    with pytest.raises(CacheError) as raised:
        FileCache(obstacle / "cache")
    message = str(raised.value)
    assert str(obstacle / "cache") in message
    assert "not a directory" in message
    assert "GIANTSTEP_CACHE_DIR or cache_folder= chooses another" in message
    assert "\n" not in message
    assert isinstance(raised.value, OSError) and isinstance(raised.value, GiantstepError)


@pytest.mark.parametrize("store", ["store_source", "store_json"])
def test_folder_that_becomes_unwritable_is_refused_when_writing(files, store):
    files.folder.rmdir()
    files.folder.touch()
    with pytest.raises(CacheError, match=r"cannot use the cache folder .*: not a directory;"):
        getattr(files, store)("name", "text")


def test_source_file_is_named_by_contents_and_versions(files, monkeypatch):
    path = files.store_source("plain", PLAIN)
    assert re.fullmatch(r"plain_[0-9a-f]{32}\.py", path.name)
    assert path.read_text() == PLAIN
    assert files.store_source("plain", PLAIN) == path
    assert files.store_source("plain", PLAIN + "\n") != path
    monkeypatch.setattr(cache_module, "_kernel_versions", lambda: "another numba")
    assert files.store_source("plain", PLAIN) != path


@pytest.mark.parametrize("name", ["", "../up", "a b", "1st", "a.b", "ä", "a" * 101])
def test_names_that_are_not_identifiers_are_refused(files, name):
    with pytest.raises(ParameterError, match="cannot name a module"):
        files.store_source(name, PLAIN)


def test_intact_file_is_not_written_again(files, monkeypatch):
    files.store_source("plain", PLAIN)
    monkeypatch.setattr(os, "open", None)
    files.store_source("plain", PLAIN)


def test_failed_write_leaves_the_old_file_and_no_other(files, monkeypatch):
    path = files.store_json("key", "old")

    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(CacheError, match="no space left on device"):
        files.store_json("key", "new")
    assert files.load_json("key") == "old"
    assert list(files.folder.iterdir()) == [path]


def test_module_is_loaded_once_and_registered(files):
    module = files.load_module("plain", PLAIN)
    assert module.answer() == 42
    assert sys.modules[module.__name__] is module
    assert module.__file__ == str(files.store_source("plain", PLAIN))
    assert files.load_module("plain", PLAIN) is module


def test_module_that_fails_is_not_registered(files):
    before = set(sys.modules)
    with pytest.raises(ZeroDivisionError):
        files.load_module("broken", "1 / 0\n")
    assert set(sys.modules) == before


@pytest.mark.parametrize("damage", [b"", PLAIN[:10].encode(), b"\xff\xfe", b"raise SystemExit\n"])
def test_changed_source_is_rebuilt_and_never_run(files, damage):
    path = files.store_source("plain", PLAIN)
    path.write_bytes(damage)
    assert files.load_module("plain", PLAIN).answer() == 42
    assert path.read_text() == PLAIN


def test_planted_bytecode_is_never_run(files):
    path = files.store_source("plain", PLAIN)
    status = path.stat()
    path.write_text(PLAIN.replace("42", "13"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    # Python trusts a .pyc whose source has the same size and time of change.
    py_compile.compile(str(path), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    path.write_text(PLAIN)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert files.load_module("plain", PLAIN).answer() == 42


def one_bit(contents):
    third = len(contents) // 3
    return contents[:third] + bytes([contents[third] ^ 1]) + contents[third + 1 :]


def checked(body):
    """Return contents with a checksum that is right, whatever they are."""
    return body + MARK + hashlib.sha256(body).digest()


def of_another_numba(contents):
    body = io.BytesIO(contents.rpartition(MARK)[0])
    assert pickle.load(body) == pytest.importorskip("numba").__version__
    return checked(pickle.dumps("0.1.0") + body.read())


DAMAGES = {
    "empty": lambda contents: b"",
    "half": lambda contents: contents[: len(contents) // 2],
    "one bit": one_bit,
    # Written by plain numba: a valid pickle, but without a checksum.
    "no checksum": lambda contents: contents.rpartition(MARK)[0],
    # The checksum is right; what it protects is not what numba expects.
    "no pickle": lambda contents: checked(b"not a pickle"),
    "another numba": of_another_numba,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("suffix", "damage"),
    [
        (".nbc", "empty"), (".nbc", "one bit"), (".nbc", "no checksum"), (".nbc", "no pickle"),
        (".nbi", "half"), (".nbi", "no checksum"), (".nbi", "another numba"),
    ],
)  # fmt: skip
def test_damaged_binaries_are_compiled_again(compiled, tmp_path, suffix, damage):
    (name,) = [name for name in compiled if ".outer" in name.name and name.suffix == suffix]
    for path, original in compiled.items():
        contents = DAMAGES[damage](original) if path == name else original
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(contents)
    assert run(RUN_KERNEL, tmp_path, KERNEL) == ["2.0", "0"]
    assert run(RUN_KERNEL, tmp_path, KERNEL) == ["2.0", "1"]


@pytest.mark.slow
def test_processes_may_race(tmp_path):
    racing = [start(RUN_KERNEL, tmp_path, KERNEL) for _ in range(3)]
    for process in racing:
        output, _ = process.communicate(timeout=300)
        assert process.returncode == 0
        assert output.startswith("2.0")
    assert not list(tmp_path.rglob("*.tmp*"))
    assert run(RUN_KERNEL, tmp_path, KERNEL) == ["2.0", "1"]


KILLED_WHILE_WRITING = """\
import os, signal, sys
left = int(sys.argv[3])
rename = os.replace
def replace(*names):
    # The temporary file is written, at least in part; the final one is not there yet.
    global left
    left -= 1
    if left < 0:
        os.truncate(names[0], os.path.getsize(names[0]) // 2)
        os.kill(os.getpid(), signal.SIGKILL)
    rename(*names)
os.replace = replace
from giantstep.numeric.cache import FileCache
FileCache(sys.argv[1]).load_module("kernel", sys.argv[2]).outer(0.0)
"""


@pytest.mark.skipif(os.name != "posix", reason="processes are killed by POSIX signals")
@pytest.mark.parametrize(
    "files_before", [pytest.param(n, marks=[pytest.mark.slow] * (n != 1)) for n in (0, 1, 2)]
)
def test_process_killed_while_writing_does_no_harm(tmp_path, files_before):
    # The source, then binary and index of the function that is called: three files.
    killed = start(KILLED_WHILE_WRITING, tmp_path, KERNEL, files_before)
    killed.communicate(timeout=300)
    assert killed.returncode == -signal.SIGKILL
    assert list(tmp_path.rglob(".*"))
    assert run(RUN_KERNEL, tmp_path, KERNEL)[0] == "2.0"
    assert not list(tmp_path.rglob(".*"))
    assert run(RUN_KERNEL, tmp_path, KERNEL) == ["2.0", "1"]


@pytest.mark.slow
def test_files_of_another_numba_are_left_alone(tmp_path, monkeypatch):
    # Both versions keep their files side by side, as two environments that share a folder do.
    assert run(RUN_KERNEL, tmp_path, KERNEL) == ["2.0", "0"]
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    other = (
        "import giantstep.numeric.cache as cache\n"
        "cache._kernel_versions = lambda: 'another numba'\n"
    )
    assert run(other + RUN_KERNEL, tmp_path, KERNEL) == ["2.0", "0"]
    assert all(path.read_bytes() == contents for path, contents in before.items())
    assert run(RUN_KERNEL, tmp_path, KERNEL) == ["2.0", "1"]


def test_numba_that_another_thread_is_importing_is_left_alone(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "numba", types.ModuleType("numba"))
    monkeypatch.delitem(sys.modules, "giantstep.numeric._binaries", raising=False)
    monkeypatch.delattr("giantstep.numeric._binaries", raising=False)
    assert files.load_module("plain", PLAIN).answer() == 42


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes that are forked")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_fork_does_not_copy_a_lock_that_is_held():
    held = threading.Event()

    def hold():
        with ONE_THREAD:
            held.set()
            time.sleep(0.2)

    other = threading.Thread(target=hold)
    other.start()
    held.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if ONE_THREAD.acquire(timeout=5) else 1)
    other.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    # Nor does the parent keep it.
    thread = threading.Thread(target=hold)
    held.clear()
    thread.start()
    assert held.wait(5)
    thread.join()


def test_threads_may_race(files):
    modules = []
    barrier = threading.Barrier(8)

    def load():
        barrier.wait()
        modules.append(files.load_module("plain", PLAIN))

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(modules) == 8
    assert all(module is modules[0] for module in modules)


@pytest.mark.parametrize(
    "document", [{}, [], "text", 0.1, {"a": [1, -0.0, True, None, {"b": "ξ"}]}]
)
def test_documents_come_back(files, document):
    assert files.load_json("any key: α/β") is None
    files.store_json("any key: α/β", document)
    assert files.load_json("any key: α/β") == document
    assert files.load_json("any key: α-β") is None


@pytest.mark.parametrize("document", [float("nan"), float("inf"), 1j, {1, 2}, b"1"])
def test_documents_that_json_cannot_hold_are_refused(files, document):
    with pytest.raises(ParameterError, match="cannot be stored as JSON"):
        files.store_json("key", document)


def test_damaged_documents_count_as_missing(files):
    path = files.store_json("key", {"value": 1234})
    intact = path.read_bytes()
    damaged = [b"", intact[:-1], intact.replace(b"1234", b"1235"), b"\xff\xfe", b"[]", b"{}", b"7"]
    for contents in damaged:
        path.write_bytes(contents)
        assert files.load_json("key") is None
    files.store_json("key", {"value": 5})
    assert files.load_json("key") == {"value": 5}


def test_documents_of_other_code_count_as_missing(files, monkeypatch):
    files.store_json("key", 1)
    monkeypatch.setattr(cache_module, "_own_fingerprint", lambda: "another")
    assert files.load_json("key") is None


def test_fingerprint_follows_the_files(tmp_path):
    module = tmp_path / "sub" / "module.py"
    module.parent.mkdir()
    module.write_text("one = 1\n")
    first = fingerprint(tmp_path)
    assert re.fullmatch("[0-9a-f]{64}", first)
    (tmp_path / "notes.txt").touch()
    assert fingerprint(tmp_path) == first
    os.utime(module, ns=(0, 0))
    second = fingerprint(tmp_path)
    assert second != first
    module.rename(module.with_name("renamed.py"))
    assert fingerprint(tmp_path) not in {first, second}


def test_fingerprint_covers_the_package_and_the_versions(monkeypatch):
    first = fingerprint()
    assert fingerprint() == first
    folders = cache_module._package_folders()
    assert len(folders) == 4
    found = cache_module._installed_versions()
    numba = pytest.importorskip("numba")
    assert found["numba"] == numba.__version__
    monkeypatch.setattr(cache_module, "_installed_versions", lambda: found | {"numba": "0.1"})
    assert fingerprint() != first


def test_reading_imports_neither_numba_nor_sympy(tmp_path):
    code = """\
import sys
from giantstep.numeric.cache import FileCache, fingerprint
files = FileCache(sys.argv[1])
fingerprint()
files.store_json("key", 1)
assert files.load_json("key") == 1
files.load_module("plain", sys.argv[2])
print(*sorted({"numba", "sympy", "numpy", "scipy"} & set(sys.modules)))
"""
    assert run(code, tmp_path, PLAIN) == []


class _Screen(io.StringIO):
    def __init__(self, terminal):
        super().__init__()
        self.terminal = terminal

    def isatty(self):
        return self.terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_compiling_and_deriving_are_shown_on_terminals_only(tmp_path, monkeypatch, terminal):
    source = (
        "from numba import njit\n\n\n@njit(cache=True)\ndef f(x):\n    return x + 1\n\n\n"
        "@njit(cache=True)\ndef g(x):\n    return f(2 * x)\n"
    )
    module = FileCache(tmp_path).load_module("shown", source)
    screen = _Screen(terminal)
    monkeypatch.setattr("sys.stderr", screen)
    assert module.g(3.0) == 7
    compiled = screen.getvalue()
    with deriving("a bar", 2) as done:
        done()
    derived = screen.getvalue().removeprefix(compiled)
    assert ("compiling" in compiled) == ("equations of a bar" in derived) == terminal
    assert terminal or not compiled + derived


def test_operations_are_resolved_once_for_inference_and_lowering(files, monkeypatch):
    # Numba asks for every operation, and each time it is written as LLVM: a third of its time.
    from numba import types as numba_types

    asked, resolve = [], numba_types.Function.get_call_type

    def counted(function, context, args, kws):
        asked.append((function, args))
        return resolve(function, context, args, kws)

    monkeypatch.setattr(numba_types.Function, "get_call_type", counted)
    source = (
        "from numba import njit\n\n\n"
        "@njit(cache=True)\ndef f(x):\n    return x * x * x + x * x + (x + x)\n"
    )
    assert files.load_module("once", source).f(3.0) == 42.0
    assert numba_types.Function.get_call_type is counted
    of_floats = [key for key in asked if key[1] == (numba_types.float64, numba_types.float64)]
    assert len(of_floats) == len(set(of_floats)) == 2  # a product and a sum


def test_function_that_another_one_calls_is_compiled_as_its_part_alone(files):
    # Optimised, written and wrapped for itself, too, it would take as long once more.
    source = (
        "from numba import njit\n\n\n@njit(cache=True)\ndef f(x):\n    return x + 1\n\n\n"
        "@njit(cache=True)\ndef g(x):\n    return f(x) * f(2 * x)\n"
    )
    module = files.load_module("apart", source)
    assert module.g(3.0) == 28.0
    assert sum(module.g.stats.cache_misses.values()) == 1
    assert not module.f.stats.cache_misses and not module.f.overloads
    # From Python, and inside another function afterwards.
    assert module.f(3.0) == 4.0
    assert module.g(3) == 28
    assert [str(args) for args in module.f.overloads] == ["(float64,)"]
    assert module.f(3) == 4


def test_thread_that_compiles_makes_no_part_of_what_another_one_compiles(files, monkeypatch):
    from numba.core.compiler_lock import global_compiler_lock

    from giantstep.numeric import _binaries

    source = "from numba import njit\n\n\n@njit(cache=True)\ndef f(x):\n    return x + 1\n"
    module = files.load_module("waiting", source)
    found = []
    thread = threading.Thread(target=lambda: found.append(module.f(3.0)))
    with global_compiler_lock, monkeypatch.context() as patch:
        patch.setattr(_binaries, "_remembering", [True])
        thread.start()
        thread.join(0.05)
        assert not found
    thread.join()
    assert found == [4.0]
    assert module.f.overloads
