"""Calling a student's function so that nothing it does reaches beyond the call.

It runs in a thread of its own with a time limit, on copies of the inputs, with what it prints kept
aside. An exception is remembered with the line that raised it. Random state and default dtype are
put back by `undisturbed`. Not stopped can be a single call in C that holds the interpreter's lock.
"""

import builtins
import contextlib
import copy
import ctypes
import io
import linecache
import os
import random
import sys
import sysconfig
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

TIME_LIMIT = 4.0  # seconds for one call; the inputs are tiny, so a right answer takes milliseconds

_OUR_FOLDER = str(Path(__file__).parents[1])
_LIBRARIES = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))


class TimeUp(BaseException):
    """Raised inside a function that runs too long. Not an Exception: `except Exception` lets it pass."""


class Raised(Exception):
    """What a function raised, in one line, and where.

    `error` is the exception, `where` its own line of code, "" if that is unknown.
    """

    def __init__(self, error: BaseException, where: str) -> None:
        try:
            text = str(error).strip().splitlines()
        except Exception:  # an exception of the student's own that cannot be shown
            text = []
        text = text[0][:300].encode("utf-8", "replace").decode() if text else ""
        super().__init__(f"{type(error).__name__}: {text}" if text else type(error).__name__)
        self.error, self.where, self.text = error, where, text


class _Sink(io.StringIO):
    """Keeps the beginning of what is printed: an endless loop may print without end."""

    def write(self, text: str) -> int:
        if self.tell() < 10_000:
            super().write(text[:10_000])
        return len(text)

    def close(self) -> None:
        pass


@dataclass
class Outcome:
    """What one call did."""

    returned: object = None
    error: Raised | None = None
    changed: tuple[int, ...] = ()  # arguments that are not what they were
    gradients: tuple[Tensor | None, ...] | None = None  # of the floating-point arguments; None: not asked
    in_place: Raised | None = None  # autograd could not go back: a tensor it needs was overwritten
    printed: str = ""
    warned: tuple[str, ...] = ()

    @property
    def timed_out(self) -> bool:
        """Whether the call was still running at the time limit."""
        return self.error is not None and isinstance(self.error.error, TimeUp)


def call(
    function: Callable, arguments: tuple, *, gradients: tuple[int, ...] = (), trusted: bool = False
) -> Outcome:
    """Call `function` on copies of `arguments` with a time limit, and report; never raises for it.

    Args:
        arguments: tensors are cloned (keeping their strides), modules copied; others are passed on.
        gradients: places of floating-point tensors. If there are any, a fixed gradient is sent back, and
            what arrives at these is kept.
        trusted: a function of ours, that needs no watching: the same, sooner.
    """
    run = _plain if trusted else _watched
    outcome = run(function, [_copy(a) for a in arguments])
    if gradients and outcome.error is None and not outcome.changed:
        _add_gradients(outcome, function, arguments, gradients, run)
    return outcome


def _plain(function: Callable, arguments: list) -> Outcome:
    try:
        return Outcome(returned=function(*arguments))
    except Exception as error:
        return Outcome(error=Raised(error, ""))


def _copy(argument):
    if isinstance(argument, nn.Module | list | dict):
        return copy.deepcopy(argument)
    if not isinstance(argument, Tensor):
        return argument
    if 0 in argument.stride():  # expanded: two entries are one place in memory, and cannot be written apart
        return argument.clone()
    clone = torch.empty_strided(
        argument.shape, argument.stride(), dtype=argument.dtype, device=argument.device
    )
    return clone.copy_(argument)


def _watched(function: Callable, arguments: list) -> Outcome:
    outcome, printed = Outcome(), _Sink()
    before = [_copy(a) for a in arguments]

    def work() -> None:
        try:
            outcome.returned = function(*arguments)
        except BaseException as error:  # sys.exit() in an answer ends the answer only
            outcome.error = Raised(error, _line_of(error))

    thread = threading.Thread(target=work, daemon=True)
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), _no_input():
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            thread.start()
            thread.join(TIME_LIMIT)
        if thread.is_alive():
            outcome.error = Raised(TimeUp(), _line_running(thread))
            _stop(thread)
    torch.set_default_dtype(torch.float32)  # as `undisturbed` has it, whatever the function did
    outcome.printed = printed.getvalue().encode("utf-8", "replace").decode()
    outcome.warned = tuple(text.splitlines()[0] for w in caught if (text := str(w.message).strip()))
    if not outcome.timed_out:
        outcome.changed = tuple(
            i for i, (a, b) in enumerate(zip(arguments, before, strict=True)) if not _untouched(a, b)
        )
    return outcome


def _stop(thread: threading.Thread) -> None:
    """Raise TimeUp in the thread. One that holds on to it (a bare `except:`) is left behind: a daemon."""
    for _ in range(20):
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(TimeUp))
        thread.join(0.05)
        if not thread.is_alive():
            return


def _untouched(argument, before) -> bool:
    if isinstance(argument, list) and all(isinstance(a, int | float | str) for a in before):
        return argument == before
    if not isinstance(argument, Tensor):
        return True
    if argument.shape != before.shape or argument.dtype != before.dtype or argument.requires_grad:
        return False  # requires_grad: gradients would pile up in the caller's tensor
    if argument.device.type == "meta" or torch.equal(argument, before):
        return True
    return torch.equal(argument.nan_to_num(), before.nan_to_num())


def _add_gradients(
    outcome: Outcome, function: Callable, arguments: tuple, gradients: tuple[int, ...], run: Callable
) -> None:
    leaves = [_copy(a) for a in arguments]
    wanted = [leaves[i].requires_grad_() for i in gradients]

    def forward_and_back(*_):
        # Not the leaves themselves: autograd forbids writing into a leaf, and that is no mistake here.
        returned = function(*[a.view_as(a) if differentiable(a) else a for a in leaves])
        outputs = [t for t in _as_tuple(returned) if isinstance(t, Tensor) and t.requires_grad]
        if not outputs:
            return [None] * len(wanted)
        back = [fixed(t) for t in outputs]
        return torch.autograd.grad(outputs, wanted, back, allow_unused=True)

    result = run(forward_and_back, [])
    if result.error is None:
        outcome.gradients = tuple(result.returned)
    elif "inplace" in str(result.error):
        outcome.in_place = result.error
    else:
        outcome.error = result.error


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return None


class _Factories(TorchFunctionMode):
    """Notices a tensor that is made without saying where."""

    names = ("arange", "empty", "eye", "full", "linspace", "ones", "rand", "randn", "tensor", "zeros")
    functions = frozenset(getattr(torch, name) for name in names)

    def __init__(self) -> None:
        super().__init__()
        self.called = False

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.called = self.called or (function in self.functions and kwargs.get("device") is None)
        return function(*args, **kwargs)


def made_on_the_cpu(function: Callable, arguments: tuple) -> str:
    """The line that fails where the inputs live elsewhere, since it meets a tensor made on the CPU; or "".

    Tried on the meta device, which is everywhere. (Its first use takes a second: only with cause.)
    """
    factories = _Factories()

    def watched(*copies):
        with factories:
            return function(*copies)

    if (
        not any(isinstance(a, Tensor) for a in arguments)
        or call(watched, arguments).error
        or not factories.called
    ):
        return ""
    outcome = call(function, tuple(a.to("meta") if isinstance(a, Tensor) else a for a in arguments))
    told = str(outcome.error) if outcome.error else ""
    return outcome.error.where if "expected device meta" in told or "Cannot copy out of meta" in told else ""


def differentiable(argument) -> bool:
    """Whether autograd can follow it: a floating-point tensor."""
    return isinstance(argument, Tensor) and argument.is_floating_point()


def fixed(like: Tensor) -> Tensor:
    """A gradient to send back: numbers between -1 and 1, no two neighbours alike."""
    return torch.arange(1, like.numel() + 1).mul(2.399963).cos().reshape(like.shape).to(like)


def _as_tuple(returned) -> tuple:
    return tuple(returned) if isinstance(returned, tuple | list) else (returned,)


def _line_of(error: BaseException) -> str:
    """The deepest line of the student's own code in the traceback, as "line 3: `…`"."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not f.filename.startswith((_OUR_FOLDER, *_LIBRARIES, "<frozen"))]
    return _show_line(own[-1].filename, own[-1].lineno) if own else ""


def _line_running(thread: threading.Thread) -> str:
    frame = sys._current_frames().get(thread.ident)
    while frame and frame.f_code.co_filename.startswith((_OUR_FOLDER, *_LIBRARIES)):
        frame = frame.f_back
    return _show_line(frame.f_code.co_filename, frame.f_lineno) if frame else ""


def _show_line(filename: str, number: int) -> str:
    text = linecache.getline(filename, number).strip()
    return f"line {number}: {text}" if text else f"line {number}"


@contextlib.contextmanager
def _no_input() -> Iterator[None]:
    def refuse(*_):
        raise RuntimeError("input() is not for a function like this: its numbers come as arguments")

    before, builtins.input = (builtins.input, sys.stdin), refuse
    sys.stdin = io.StringIO()  # exit() closes it
    try:
        yield
    finally:
        builtins.input, sys.stdin = before


_running = False


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Put back global states (random numbers, switches of torch, the folder), and warn of nothing.

    Raises:
        RuntimeError: a check is running already: this one stands inside the function that is checked.
    """
    global _running
    if _running:
        raise RuntimeError("the check stands inside your function: move it out, to the left margin")
    _running = True
    try:
        with _states_kept(), warnings.catch_warnings(), torch.inference_mode(False), torch.enable_grad():
            warnings.simplefilter("ignore")  # of mistakes that we run; a student's are caught one by one
            with torch.autocast("cpu", enabled=False), _on_the_cpu():
                yield
    finally:
        _running = False


def _on_the_cpu() -> contextlib.AbstractContextManager:
    """Inputs are made on the CPU, also where another device is the default."""
    default = torch.empty(0).device.type
    return contextlib.nullcontext() if default == "cpu" else torch.device("cpu")


@contextlib.contextmanager
def _states_kept() -> Iterator[None]:
    numpy = sys.modules.get("numpy")
    states = torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy else None
    on_gpu = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    dtype, deterministic = torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled()
    anomaly, depth, folder = torch.is_anomaly_enabled(), sys.getrecursionlimit(), _folder()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(dtype)
        torch.use_deterministic_algorithms(deterministic)
        torch.autograd.set_detect_anomaly(anomaly)
        sys.setrecursionlimit(depth)
        if folder and folder != _folder():
            os.chdir(folder)
        torch.set_rng_state(states[0])
        random.setstate(states[1])
        if numpy:
            numpy.random.set_state(states[2])
        if on_gpu is not None:
            torch.cuda.set_rng_state_all(on_gpu)
