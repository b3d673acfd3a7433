# Two commands do all the set-up: `make demo` and `make test`. Everything is installed into .venv.
#
#   make demo           the main job on a generated table
#   make dev            install what was edited, for one more look: nothing is compiled for a .py
#   make lint           style and types
#   make test           lint, then the tests that a newcomer and every commit need
#   make test-slow      all other tests but campaigns, and properties on all of their examples
#   make test-campaign  the tests that take hours
#   make sanitize       tests of the kernel under address, undefined-behaviour and thread sanitizers
#   make arm            tests of the kernel, and results, on an emulated aarch64
#   make docs           the site
#   make wheel          a wheel for other machines, tried where nothing can be compiled
#
# But for `make dev`, the package is installed as users get it (a built wheel with the kernel for
# every instruction set, not an editable link). Tests run from inside .venv: the source folder, which
# lacks the compiled module, is on no import path there, so what is tested is what was installed.

PYTHON ?= python3
VENV := .venv
# Versions that the tests passed with; `make CONSTRAINTS= ...` takes the newest there are.
CONSTRAINTS ?= .ci/constraints.txt
WORKERS ?= 2
# What `make test` runs, as seen from .venv: `make TESTS=../tests/samplers test`.
TESTS ?= ../tests
PIP := $(VENV)/bin/python -m pip --disable-pip-version-check install --quiet
PYTEST := cd $(VENV) && bin/python -m pytest -c ../pyproject.toml --rootdir .. \
	-n $(WORKERS) --dist loadfile --no-loadscope-reorder
SOURCES := pyproject.toml CMakeLists.txt LICENSE README.md \
	$(shell find srs_ooc -name __pycache__ -prune -o ! -name '*.so' -print)

.PHONY: demo dev environment test test-slow test-campaign sanitize wheel arm lint docs clean
.DELETE_ON_ERROR:

demo: $(VENV)/.installed
	$(VENV)/bin/python benchmarks/demo.py

# The kernel for the least instruction set alone, its objects kept in build/dev. What is installed
# as users get it is out of date after this, so `make test` builds it again.
dev: $(VENV)/.equipped
	@rm -f $(VENV)/.installed $(VENV)/.installed-test
	$(PIP) --no-build-isolation --no-deps --force-reinstall \
		--config-settings=build-dir=build/dev \
		--config-settings=cmake.define.SRS_ALL_ISAS=OFF .

test: lint
	export SRS_OOC_EXAMPLES=0.2; $(PYTEST) -m "not slow and not campaign" $(TESTS)

test-slow: $(VENV)/.installed-test
	$(PYTEST) -m "(slow or property) and not campaign" ../tests

test-campaign: $(VENV)/.installed-test
	$(PYTEST) -m campaign ../tests

sanitize: $(VENV)/.installed-test
	.ci/sanitize

arm: $(VENV)/.installed-test
	.ci/arm

environment: $(VENV)/.installed-test

lint: $(VENV)/.installed-test
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

wheel: $(VENV)/.installed-test
	.ci/wheel

docs: $(VENV)/.installed-test
	$(VENV)/bin/python -P -m mkdocs build --strict
	@echo "Open build/site/index.html; it needs no network."

clean:
	rm -rf $(VENV) build demo

$(VENV)/.installed: $(VENV)/.created $(SOURCES)
	@echo "Installing srs-ooc into $(VENV) (about a minute the first time) ..."
	$(PIP) .
	@touch $@

# The wheel is built by the tools in .venv, and what was compiled stays in build: after an edit of a
# .py nothing is compiled. tests/test_packaging.py builds one from the source distribution, isolated.
$(VENV)/.installed-test: $(VENV)/.equipped $(SOURCES)
	@echo "Installing srs-ooc into $(VENV) ..."
	$(PIP) --no-build-isolation --no-deps --force-reinstall .
	@touch $(VENV)/.installed $@

# All that the build, the package and its tests need, cmake and ninja too.
$(VENV)/.equipped: $(VENV)/.created pyproject.toml .ci/requirements.py $(CONSTRAINTS)
	@echo "Installing what srs-ooc and its tests need into $(VENV) (a minute the first time) ..."
	$(VENV)/bin/python .ci/requirements.py >$@.txt
	$(PIP) $(addprefix --constraint ,$(CONSTRAINTS)) --requirement $@.txt
	@touch $@

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
