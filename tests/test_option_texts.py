"""Docstrings of calls say of each option what the command line says: one declaration, one text."""

import ast
import dataclasses
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import srs_ooc
from srs_ooc.base.budget import PROCESS_NBYTES
from srs_ooc.base.options import spelled
from srs_ooc.base.text import MB
from srs_ooc.cli.ingest import ingest_command
from srs_ooc.cli.run import run_command
from srs_ooc.ingestion.ingest_options import FLAGS, OPTIONS, IngestOptions
from srs_ooc.ingestion.ingest_options import HELP as INGEST_HELP
from srs_ooc.runs.spec import JUDGES, declared
from srs_ooc.samplers.base import method_names

HELP = {option.name: option.help for option in run_command.params if hasattr(option, "help")}
FURTHER = {
    "model": "Other models than trees rank features and select none: say ``n_features_to_select``.",
    "class_weight": "Or weights by class label, 1 for those that are not named.",
}
"""What is true of an estimator besides."""
CALLS = {
    "run": srs_ooc.run,
    "resume": srs_ooc.resume,
    "ingest": srs_ooc.ingest,
    "SRSSelector": srs_ooc.SRSSelector,
}
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


# An option of an ingest is declared in one place.

OF_TEXT = {"separator", "comment", "decimal", "missing", "header"}
COMMAND_ALONE = {"kind", "target_file", "orient", "samples", "sample_features", "id_name"} | OF_TEXT
"""Options that Python does not have: it reads text tables with pandas."""
MANY = 5


def test_python_takes_each_declared_option_with_its_default():
    parameters = inspect.signature(srs_ooc.ingest).parameters
    taken = {name: parameters[name].default for name in OPTIONS.keys() - COMMAND_ALONE}
    assert set(parameters) - taken.keys() == {"table", "store", "client", "progress"}
    other = {name for name, one in taken.items() if one != OPTIONS[name]["default"]}
    assert {name: taken[name] for name in other} == {"kinds": None, "strata": None}


def test_the_command_has_each_declared_option_and_says_its_help():
    found = {one.name: one for one in ingest_command.params}
    shared = {"memory_mb", "threads"}
    assert OPTIONS.keys() <= found.keys()
    assert {name: found[name].help for name in OPTIONS.keys() - shared} == {
        name: INGEST_HELP[name] for name in OPTIONS.keys() - shared
    }
    fields = {one.name for one in dataclasses.fields(IngestOptions) if one.metadata}
    assert fields <= OPTIONS.keys()


def test_options_are_there_where_python_drops_docstrings():
    code = "import sys; from srs_ooc.cli import main; main(['ingest', '--help-all'])"
    command = [sys.executable, "-OO", "-c", code]
    said = subprocess.run(command, capture_output=True, check=True, text=True).stdout
    assert set(FLAGS.values()) <= set(re.findall(r"--[a-z-]+", said))


def names_at(node):
    """The names that a function takes, a class has as fields, a dict as keys, or a call gives."""
    match node:
        case ast.FunctionDef(args=args):
            return {one.arg for one in [*args.posonlyargs, *args.args, *args.kwonlyargs]}
        case ast.ClassDef(body=body):
            return {one.target.id for one in body if isinstance(one, ast.AnnAssign)}
        case ast.Dict(keys=keys):
            return {one.value for one in keys if isinstance(one, ast.Constant)}
        case ast.Call(keywords=keywords):
            return {one.arg for one in keywords}
    return set()


def lists_of_options(source):
    """Names of functions and classes, or kinds of other nodes, that list many options by hand."""
    nodes = ast.walk(ast.parse(source))
    some = [node for node in nodes if len(names_at(node) & OPTIONS.keys()) > MANY]
    return [getattr(node, "name", type(node).__name__) for node in some]


def test_options_of_an_ingest_are_listed_where_they_are_declared_and_for_python():
    package = Path(inspect.getfile(srs_ooc)).parent
    paths = [package / "api.py", *(package / "ingestion").rglob("*.py")]
    paths += [package / "estimators.py", package / "cli" / "ingest.py"]
    files = {path.relative_to(package).as_posix(): path.read_text() for path in paths}
    found = {name: lists for name, text in files.items() if (lists := lists_of_options(text))}
    assert found == {
        "ingestion/ingest_options.py": ["IngestOptions", "Dict"],
        "ingestion/ingest.py": ["ingest"],
        "estimators.py": ["Call"],
    }


@pytest.mark.parametrize(
    "form", ["def f({}): ...", "f({})", "dict({})", "class A:\n    {}", "one = {{{}}}"]
)
def test_a_list_of_options_is_seen(form):
    names = sorted(OPTIONS)[: MANY + 1]
    each = "{}: 1" if "class" in form else "'{}': 1" if "{{" in form else "{}=1"
    joined = ("\n    " if "class" in form else ", ").join(each.format(name) for name in names)
    assert lists_of_options(form.format(joined))
