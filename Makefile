# Two commands do all the set-up: `make demo` and `make test`. Everything is installed into .venv.
# `make test-slow` runs the tests that `make test` leaves out, but those that take hours (`make
# test-campaign`); `make docs` builds the site.
#
# The package is installed as users get it (a built wheel, not an editable link), and the tests run
# from inside .venv: the source folder, which lacks the compiled module, is on no import path there,
# so what is tested is what the wheel holds.

PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check install --quiet
PYTEST := cd $(VENV) && bin/python -m pytest -c ../pyproject.toml --rootdir .. -n 2 --dist loadfile
SOURCES := pyproject.toml CMakeLists.txt LICENSE README.md \
	$(shell find srs_ooc -name __pycache__ -prune -o ! -name '*.so' -print)

.PHONY: demo environment test test-slow test-campaign lint docs clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	$(VENV)/bin/python benchmarks/demo.py

test: lint
	export SRS_OOC_EXAMPLES=0.2; $(PYTEST) -m "not slow and not campaign" ../tests

test-slow: $(VENV)/.installed-test
	$(PYTEST) -m "(slow or property) and not campaign" ../tests

test-campaign: $(VENV)/.installed-test
	$(PYTEST) -m campaign ../tests

environment: $(VENV)/.installed-test

lint: $(VENV)/.installed-test
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

docs: $(VENV)/.installed-test
	$(VENV)/bin/python -m mkdocs build --strict
	@echo "Open build/site/index.html; it needs no network."

clean:
	rm -rf $(VENV) build demo

$(VENV)/.installed: $(VENV)/.created $(SOURCES)
	@echo "Installing srs-ooc into $(VENV) (about a minute the first time) ..."
	$(PIP) .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.created $(SOURCES)
	@echo "Installing srs-ooc and its test tools into $(VENV) (about a minute the first time) ..."
	$(PIP) '.[test]'
	@touch $(VENV)/.installed $@

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "make: expected Python 3.11 or newer as '$(PYTHON)', found: $$($(PYTHON) -V 2>&1)." \
			"Install one, or name it: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { \
		echo "make: '$(PYTHON)' cannot make virtual environments." \
			"Install its venv module (on Debian and Ubuntu: python3-venv)." >&2; exit 1; }
	@$(PYTHON) -c 'import os, sys, sysconfig; \
		sys.exit(not os.path.exists(sysconfig.get_path("include") + "/Python.h"))' || { \
		echo "make: '$(PYTHON)' has no C headers, which the native kernel is built with." \
			"Install them (on Debian and Ubuntu: python3-dev)." >&2; exit 1; }
	@command -v "$${CXX:-c++}" >/dev/null || command -v g++ >/dev/null \
		|| command -v clang++ >/dev/null || { \
		echo "make: expected a C++17 compiler, found none." \
			"Install one (on Debian and Ubuntu: g++), or name it: CXX=/path/to/compiler make ..." >&2; \
		exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@
