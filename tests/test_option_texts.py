"""Docstrings of calls say of each option what the command line says: one declaration, one text."""

import inspect
import re

import pytest

import srs_ooc
from srs_ooc.base.budget import PROCESS_NBYTES
from srs_ooc.base.options import spelled
from srs_ooc.base.text import MB
from srs_ooc.cli.run import run_command
from srs_ooc.runs.settling import declared
from srs_ooc.runs.spec import JUDGES
from srs_ooc.samplers.base import method_names

HELP = {option.name: option.help for option in run_command.params if hasattr(option, "help")}
FURTHER = {
    "model": "Other models than trees rank features and select none: say ``n_features_to_select``.",
    "class_weight": "Or weights by class label, 1 for those that are not named.",
}
"""What is true of an estimator besides."""
CALLS = {"run": srs_ooc.run, "resume": srs_ooc.resume, "SRSSelector": srs_ooc.SRSSelector}
SAID_FURTHER = {"memory_mb": {str(PROCESS_NBYTES // MB)}}
"""Numbers that a docstring says besides."""
_NAMED = re.compile(rf"\b(?:{'|'.join([*JUDGES, *method_names()])})\b|\d[\d.,]*\d|\d")


def entries_of(call):
    """The text of each parameter's entry in a docstring."""
    page = inspect.getdoc(call).split("Parameters\n----------\n")[1]
    page = re.split(r"\n\n\w+\n---", page)[0]
    found = {}
    for names, text in re.findall(r"^(\S[^:\n]*?)(?: : .*)?\n((?:    .*\n?)+)", page, re.MULTILINE):
        found |= dict.fromkeys(names.split(", "), " ".join(text.split()))
    return found


def said_of(name):
    """What the command line says of an option, as a docstring has it."""
    text = re.sub(r"  \[default: (.*)\]$", r" Default: \1.", spelled(HELP[name]))
    return " ".join(f"{text} {FURTHER.get(name, '')}".split())


@pytest.mark.parametrize("name", CALLS)
def test_a_docstring_has_an_entry_for_each_parameter_and_no_other(name):
    parameters = {p.name for p in inspect.signature(CALLS[name]).parameters.values()} - {"self"}
    assert {entry.lstrip("*") for entry in entries_of(CALLS[name])} == parameters


@pytest.mark.parametrize("call", ["run", "SRSSelector"])
def test_a_docstring_says_of_a_declared_option_what_help_says(call):
    entries = entries_of(CALLS[call])
    shared = set(entries) & set(declared())
    assert {name: entries[name] for name in shared} == {name: said_of(name) for name in shared}
    assert {"judge", "method"} <= shared


@pytest.mark.parametrize("call", ["run", "SRSSelector"])
def test_a_docstring_names_no_judge_method_or_number_that_help_does_not(call):
    for name, text in entries_of(CALLS[call]).items():
        if HELP.get(name) and name not in declared():
            further = SAID_FURTHER.get(name, set())
            assert set(_NAMED.findall(text)) - set(_NAMED.findall(HELP[name])) <= further, name
