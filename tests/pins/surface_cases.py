"""What programs and people rely on by name: calls, classes, options, help, keys, entry points."""

import dataclasses
import functools
import inspect
import re

import click
from access import EXTENDED, GROUPS, PUBLIC_MODULES, commands
from click.testing import CliRunner

_PLACES = re.compile(r"\b(?:[a-z_]\w*\.)+(?=[A-Za-z_])")
"""Modules in annotations: where a class lives may change."""
_DEFAULTS = re.compile(r"<function \w+( at 0x[0-9a-f]+)?>")
_ARRAYS = re.compile(r"ndarray\[(?:tuple\[[^]]*\]|Any), dtype\[(\w+(?:\[Any\])?)\]\]")
"""As versions of NumPy write ``NDArray`` out."""


def _signature(call):
    try:
        text = str(inspect.signature(call))
    except (TypeError, ValueError):
        return "(unknown)"
    return _DEFAULTS.sub("<function>", _annotation(text))


def _annotation(text):
    return _ARRAYS.sub(r"NDArray[\1]", _PLACES.sub("", text.replace("'", "")))


def _members(kind):
    """Public methods, properties and fields of a class, its bases of this package included."""
    found = {}
    for name in dir(kind):
        member = inspect.getattr_static(kind, name)
        if name.startswith("_") or name.endswith("_request") or not _is_ours(kind, name):
            continue
        if isinstance(member, property | functools.cached_property):
            found[name] = "property"
        elif callable(getattr(kind, name)):
            found[name] = _signature(getattr(kind, name))
    if dataclasses.is_dataclass(kind):
        for field in dataclasses.fields(kind):
            if not field.name.startswith("_"):
                plain = type(field.type) is type
                found[field.name] = _annotation(field.type.__name__ if plain else str(field.type))
    return dict(sorted(found.items()))


def _is_ours(kind, name):
    owner = next(base for base in kind.__mro__ if name in vars(base))
    return owner.__module__.partition(".")[0] == "srs_ooc"


def described(value):
    """What a name stands for."""
    if inspect.isclass(value):
        return {"class": _signature(value), "members": _members(value)}
    if callable(value):
        return _signature(value)
    return type(value).__name__


def _module(module):
    return {name: described(getattr(module, name)) for name in sorted(module.__all__)}


def _keys(command):
    """Names that a configuration file may hold, where the command takes one."""
    options = [option for option in command.params if isinstance(option, click.Option)]
    flags = [flag for option in options for flag in option.opts if flag.startswith("--")]
    return sorted(flag[2:].replace("-", "_") for flag in flags) if "--config" in flags else None


def _options():
    keys = {name: _keys(command) for name, command in commands().items()}
    return {name: found for name, found in keys.items() if found is not None}


def help_of(name, flag="--help"):
    words = [*name.split(), flag] if name != "srs-ooc" else [flag]
    result = CliRunner(env={"COLUMNS": "80"}).invoke(
        commands()["srs-ooc"], words, prog_name="srs-ooc", terminal_width=80
    )
    return result.output.splitlines()


NAMES = {
    **{f"module {name}": functools.partial(_module, m) for name, m in PUBLIC_MODULES.items()},
    "for extensions": lambda: {name: described(value) for name, value in EXTENDED.items()},
    "entry points": lambda: GROUPS,
    "keys of configuration files": _options,
    **{f"help of {name}": functools.partial(help_of, name) for name in commands()},
    **{
        f"all help of {name}": functools.partial(help_of, name, "--help-all")
        for name, command in commands().items()
        if getattr(command, "first", ())
    },
}


def pin_of_surface(name, _folder):
    return NAMES[name]()
