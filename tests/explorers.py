"""Every explorer of the course, by `lesson.Name`, and the values at the ends of a control."""

import importlib
import inspect
import pkgutil

import ipywidgets

from lecture_utils import explore
from lecture_utils.explore.explorer import Explorer

EXPLORERS = {
    f"{module.name}.{name}": kind
    for module in pkgutil.iter_modules(explore.__path__)
    for name, kind in inspect.getmembers(importlib.import_module(f"{explore.__name__}.{module.name}"))
    if inspect.isclass(kind) and issubclass(kind, Explorer) and kind is not Explorer
}


def options(control):
    """The values of a control that halts at some only, in order."""
    return [option[1] if isinstance(option, tuple) else option for option in control.options]


def ends(control):
    """The values at both ends of a control."""
    if isinstance(control, ipywidgets.Checkbox):
        return [False, True]
    if isinstance(control, ipywidgets.FloatLogSlider):
        return [control.base**control.min, control.base**control.max]
    if isinstance(control, ipywidgets.Textarea):
        return ["", control.placeholder]
    if hasattr(control, "options"):
        return [options(control)[0], options(control)[-1]]
    return [control.min, control.max]
