"""Numba's cached machine code: used only if it is what was written, and run in one way only.

Numba unpickles its index (``.nbi``) and data (``.nbc``) files without looking. A truncated one
raises EOFError or UnpicklingError at the first call, a changed one can crash the interpreter or
return wrong numbers. Here each file ends with the SHA-256 of what precedes it. Pickle ignores
what follows its end mark, so plain numba still reads these files.

A binary holds copies of the functions that it calls, optimised together with it. Numba runs all
binaries of a process in one engine, which takes the first copy of each function that it meets. A
process that compiles meets the callees first, each optimised by itself; one that reads the cache
meets the caller: other instructions, other last bits, which Newton's method makes larger. So each
binary has an engine of its own, and what was just compiled is run as if it had been read.
"""

import contextlib
import copy
import hashlib
import logging
import os
from collections.abc import Iterator
from types import ModuleType
from typing import Any, BinaryIO

from numba import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import CompilerBase
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import PassManager
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.registry import CPUDispatcher
from numba.core.sigutils import normalize_signature
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NoPythonBackend,
    NopythonTypeInference,
)
from numba.core.untyped_passes import FixupArgs, IRProcessing, TranslateByteCode

from ..atomic_files import replacing

logger = logging.getLogger(__name__)

_MARK = b"\ngiantstep sha256 "
_NUMBAS = (
    CPUDispatcher, FunctionCache, IndexDataCacheFile, CompileResultCacheImpl, _FunctionCompiler
)  # fmt: skip


def verify_binaries(module: ModuleType) -> None:
    """Make the jitted functions of a module check their cached binaries before loading them.

    Parameters
    ----------
    module : module
        Its own functions at module level made by ``numba.njit(cache=True)`` are changed in place.
        Nothing happens to functions of other modules.
    """
    for function in vars(module).values():
        if not isinstance(function, CPUDispatcher):
            continue
        if function.py_func.__module__ != module.__name__:
            continue
        cache: Any = getattr(function, "_cache", None)
        file: Any = getattr(cache, "_cache_file", None)
        form: Any = getattr(cache, "_impl", None)
        compiler: Any = getattr(function, "_compiler", None)
        # Exact types: should numba change its classes, its own behaviour stays.
        if (type(function), type(cache), type(file), type(form), type(compiler)) == _NUMBAS:
            function.__class__ = _Dispatcher
            cache.__class__ = _ForgivingCache
            file.__class__ = _VerifiedFile
            form.__class__ = _ApartForm
            compiler.__class__ = _ReloadingCompiler
            compiler.pipeline_class = _ShortPipeline
            compiler.cache = cache


class _ApartForm(CompileResultCacheImpl):
    """Binaries that call their own copies of functions, whatever else this process has loaded."""

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        target_context.refresh()
        apart = copy.copy(target_context)
        apart._internal_codegen = JITCPUCodegen("giantstep")
        return super().rebuild(apart, payload)


_bars: list[Any] = []
"""The bar of the outermost function that is being compiled; numba has one lock around this."""


@contextlib.contextmanager
def _one_more_compiled() -> Iterator[None]:
    """Count compiled functions in one bar, on stderr of terminals and in notebooks."""
    if _bars:
        yield
        _bars[0].update()
        return
    from tqdm.auto import tqdm  # looks for notebook widgets, which costs time at every import

    with tqdm(desc="compiling", unit="function", leave=False, disable=None) as bar:
        _bars.append(bar)
        try:
            yield
        finally:
            _bars.clear()


# Types of arguments that decide alone what an operation on them is.
_PLAIN_TYPES = (types.Number, types.Boolean, types.Array, types.UniTuple)
_remembering: list[bool] = []
"""Not empty within the outermost function that is being compiled; guarded as `_bars` are."""


@contextlib.contextmanager
def _types_remembered() -> Iterator[None]:
    """Find out what each operation on numbers and arrays is only once.

    Numba tries dozens of overloads for every one, when it infers types and again when it writes
    LLVM, which takes half of the time of the former and a third of that of the latter.
    """
    if _remembering:
        yield
        return
    functions: Any = types.Function
    resolve, found = functions.get_call_type, {}

    def remembered(function: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or not all(isinstance(arg, _PLAIN_TYPES) for arg in args):
            return resolve(function, context, args, kws)
        if (function, args) not in found:
            found[function, args] = resolve(function, context, args, kws)
        return found[function, args]

    _remembering.append(True)
    functions.get_call_type = remembered
    try:
        yield
    finally:
        functions.get_call_type = resolve
        _remembering.clear()


_parts: dict[tuple[Any, Any], Any] = {}
"""What the outermost function that is being compiled calls: for each function and its types, the
binary that calls from Python ran before. Guarded as `_bars` are."""


class _Dispatcher(CPUDispatcher):
    """Compiles a function that another one calls as a part of that one, which nobody else runs.

    Numba optimises, writes and wraps each function for itself first: a quarter of the time that a
    long kernel takes.
    """

    _compiler: "_ReloadingCompiler"

    @global_compiler_lock
    def compile(self, sig: Any) -> Any:
        if not _remembering:
            try:
                return super().compile(sig)
            finally:
                while _parts:
                    (function, args), before = _parts.popitem()
                    part: Any = function.overloads.pop(args)
                    self.targetctx.remove_user_function(part.entry_point)
                    if before is not None:
                        function.overloads[args] = before
        args, return_type = normalize_signature(sig)
        if (self, args) not in _parts:
            part = self._compiler.compile(args, return_type)
            # Python calls nothing by it; callers that are being compiled find the part by it.
            part = part._replace(entry_point=object())
            self.targetctx.insert_user_function(part.entry_point, part.fndesc, [part.library])
            _parts[self, args] = self.overloads.get(args)
            self.overloads[args] = part
        found: Any = self.overloads[args]
        return found.entry_point


class _Part(JITCodeLibrary):
    """Code that is optimised and written together with what calls it."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class _ShortPipeline(CompilerBase):
    """From bytecode to machine code, without what numba does for closures, literals and `with`.

    Nor does it print types beside source lines, for which it would write out all of a function.
    """

    def define_pipelines(self) -> list[Any]:
        state = self.state
        if state.flags.no_compile:
            state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        passes = PassManager("generated functions")
        for step in (
            TranslateByteCode,
            FixupArgs,
            IRProcessing,
            NopythonTypeInference,
            IRLegalization,
            NativeLowering,
            NoPythonBackend,
        ):
            passes.add_pass(step, step.__name__)
        passes.finalize()
        return [passes]


class _ReloadingCompiler(_FunctionCompiler):
    """Returns what a process that reads the binary would run."""

    cache: "_ForgivingCache"
    is_part: bool

    def _customize_flags(self, flags: Any) -> Any:
        # Numba gives each assignment a variable of its own, which takes longer than all else where
        # there are hundreds of variables; generated ones have one type, and LLVM does the same.
        flags.enable_ssa = False
        # Nor are there expressions of arrays or errors, which are what it would rewrite.
        flags.no_rewrites = True
        # Nobody takes the address of one, and only Python calls what is not a part.
        flags.no_cfunc_wrapper = True
        flags.no_cpython_wrapper = flags.no_compile = self.is_part
        return flags

    def compile(self, args: Any, return_type: Any) -> Any:
        self.is_part = bool(_remembering)
        with _one_more_compiled(), _types_remembered():
            compiled = super().compile(args, return_type)
        if self.is_part:
            return compiled
        form, context = self.cache._impl, compiled.target_context
        loaded = form.rebuild(context, form.reduce(compiled))
        self.cache.compiled = compiled
        # As numba does with what it reads: callers find the function by its entry point.
        context.insert_user_function(loaded.entry_point, loaded.fndesc, [loaded.library])
        return loaded


class _ForgivingCache(FunctionCache):
    """A binary that cannot be loaded or saved costs a compilation, never the result."""

    compiled: Any

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            logger.info("compiling %s again: its binary cannot be loaded: %s", self._name, error)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            # What `data` was loaded from: it has given its own code away.
            super().save_overload(sig, self.compiled)
        except OSError as error:
            logger.warning("the binary of %s cannot be saved: %s", self._name, error)


class _VerifiedFile(IndexDataCacheFile):
    """Index and data files that end with their own checksum."""

    def _load_index(self) -> Any:
        return super()._load_index() if _is_intact(self._index_path) else {}

    def _load_data(self, name: str) -> Any:
        path = self._data_path(name)
        if not _is_intact(path):
            # What numba takes to mean that the file is gone.
            raise FileNotFoundError(path)
        return super()._load_data(name)

    @contextlib.contextmanager
    def _open_for_write(self, filepath: str) -> Iterator["_HashingWriter"]:
        with replacing(filepath) as temporary, temporary.open("xb") as file:
            writer = _HashingWriter(file)
            yield writer
            file.write(_MARK + writer.hash.digest())


class _HashingWriter:
    """The part of a binary file that pickling needs, with a running hash."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.hash = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.hash.update(data)
        return self._file.write(data)


def _is_intact(path: str | os.PathLike[str]) -> bool:
    try:
        with open(path, "rb") as file:
            contents = file.read()
    except OSError:
        return False
    body, mark, digest = contents.rpartition(_MARK)
    return bool(mark) and digest == hashlib.sha256(body).digest()
