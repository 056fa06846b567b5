# Everything a developer types. Every target makes its own .venv on first use and renews it when
# pyproject.toml changes, so `git clone` and `make test` are enough.

PYTHON ?= python3
SEEDS ?= 200
JOBS ?= 2
FUZZ_SECONDS ?= 60
RUNS ?= 1
EVENTS ?= 10000000
RUN_SECONDS ?= 25
HOURS ?= 1
MINUTES ?= 10

# The tests start daemons and commands by the hundred: of modules that are compiled once each is up in half the time.
unexport PYTHONDONTWRITEBYTECODE

# Tests without sockets and clocks.
CALM := tests/golden tests/property tests/sim tests/unit/core tests/unit/wire

# Tests with a real Spark, one kind of session each.
SPARKS := tests/spark/test_local.py tests/spark/test_cluster.py tests/spark/test_connect.py tests/spark/test_audit.py

# The others start processes and wait for them. One more at a time than there are cores would be quicker, and red whenever a
# daemon is kept from its core for a second. What is marked "alone" demands something of the clock, and comes when all else is done.
OTHERS := tests $(CALM:%=--ignore=%) $(SPARKS:%=--ignore=%) --ignore=tests/tidy

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SPARK := $(VENV)/.spark
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile

HAS_JAVA := command -v java >/dev/null || test -x "$${JAVA_HOME:-none}/bin/java"
GET := DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends
GET_JAVA := $(GET) openjdk-17-jre-headless >/dev/null

# Programs that some tests are made with; a test says which one it misses.
HAS_TOOLS := command -v ip && command -v nft && command -v zsh && command -v fish && command -v groff && command -v man && command -v systemd-analyze && command -v mkfs.ext4 && command -v chromium
GET_TOOLS := $(GET) iproute2 nftables zsh fish groff man-db systemd linux-libc-dev e2fsprogs chromium >/dev/null

.DEFAULT_GOAL := help
.PHONY: help demo test spark audit-scale check docs man format sim scale bench bench-peers fuzz faults faults-planted kills soak fresh systemd install deb clean

help: ## show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "groupsvc needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	    { echo "$(PYTHON) cannot make virtual environments (no venv or ensurepip)." >&2; \
	      echo "On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[dev]'
	@touch $@

# Half a gigabyte of Java, for which pip has to make a wheel. Not to compress it, and to compile no Python before it is used,
# saves half of the time. Where it cannot be had the tests with Spark skip by name, and everything else is tested.
$(SPARK): $(STAMP)
	@printf '[bdist_wheel]\ncompression = stored\n' >$(VENV)/stored.cfg
	@if DIST_EXTRA_CONFIG=$(abspath $(VENV)/stored.cfg) $(PIP) -e '.[dev,spark]'; then touch $@; else \
	    echo "pyspark cannot be installed, so the tests with Spark skip. Later: $(BIN)/pip install -e '.[spark]'" >&2; fi

# Spark runs on the Java of the machine. Where there is none root gets it from the packages of the system; all others are told how.
.PHONY: java
java:
	@$(HAS_JAVA) || test "$$(id -u)" != 0 || $(GET_JAVA) || { apt-get update --quiet >/dev/null && $(GET_JAVA); } || true
	@$(HAS_JAVA) || echo "There is no Java, so the tests with Spark skip. To have them: apt install openjdk-17-jre-headless" >&2

.PHONY: tools
tools:
	@{ $(HAS_TOOLS); } >/dev/null || test "$$(id -u)" != 0 || $(GET_TOOLS) || { apt-get update --quiet >/dev/null && $(GET_TOOLS); } || true

demo: $(STAMP) ## a service on three daemons: who leads is killed, then who serves; the times are printed
	@$(BIN)/python examples/demo.py

check: $(STAMP) docs ## format, lint, types, documents, house rules: half a minute
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/tidy -q

# Never --quiet: mkdocs then does not see its own warnings, and strict mode lets a broken link pass.
docs: $(STAMP) ## the documentation as pages, in build/site; a broken link is an error
	@mkdir -p build
	@$(BIN)/mkdocs build >build/docs.log 2>&1 || { cat build/docs.log >&2; exit 1; }

man: $(STAMP) ## the man pages, in build/man
	@$(BIN)/python -m groupsvcd.man build/man

test: check tools ## check, then every test, those with Spark last
	$(BIN)/python -m pytest $(CALM) --numprocesses $(JOBS) --dist worksteal
	$(BIN)/python -m pytest $(OTHERS) -m 'not alone' --numprocesses $(JOBS) --dist worksteal
	$(BIN)/python -m pytest $(OTHERS) -m alone
	@$(MAKE) --no-print-directory spark

# A process for each kind of Spark session: there is one JVM in a process, and it remembers the first.
spark: $(SPARK) java ## the tests with Spark alone: pyspark, and for root Java, are installed for them
	@for file in $(SPARKS); do $(BIN)/python -m pytest $$file || exit 1; done

audit-scale: $(SPARK) java ## an audit of many made lines, timed: make audit-scale EVENTS=10000000
	@$(BIN)/python -m bench.audit_scale --events $(EVENTS) --ledger docs/ledger/audit.ndjson

format: $(STAMP) ## let ruff format and repair what it can
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

sim: $(STAMP) ## simulated disasters: make sim SEEDS=2000
	@mkdir -p docs/ledger
	@$(BIN)/python -m groupsvc.testing.sim run --seeds $(SEEDS) --jobs $(JOBS) --ledger docs/ledger/sim.ndjson

scale: $(STAMP) ## 1 000 nodes and 10 000 groups against docs/SCALE.md: some minutes
	@$(BIN)/python -m groupsvc.testing.sim scale

bench: $(STAMP) ## the promised times, measured here
	@$(BIN)/python -m bench

# The others are packages of the system, and must not start: policy-rc.d says so while they are installed, if nobody else does.
# Their clients, and ours, live in an environment of their own. What cannot be had is left out, and named.
PEERS := build/peers
PEERS_OPTIONS ?=
PEER_PACKAGES := corosync libcpg-dev etcd-server zookeeper redis-server nats-server iproute2 default-jre-headless
HAS_PEERS := command -v corosync && command -v etcd && command -v redis-server && command -v nats-server && command -v ip && test -e /usr/share/java/zookeeper.jar

$(PEERS)/.installed: pyproject.toml
	@test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[peers]'
	@touch $@

.PHONY: peers
peers: $(PEERS)/.installed
	@{ $(HAS_PEERS); } >/dev/null || test "$$(id -u)" != 0 || PACKAGES='$(PEER_PACKAGES)' sh bench/peers/install.sh || true

bench-peers: peers ## ours beside corosync, Redis, NATS, etcd, ZooKeeper: a quarter of an hour, writes docs/benchmarks.md
	@$(PEERS)/bin/python -m bench.peers $(PEERS_OPTIONS)

fuzz: $(STAMP) ## garbage for everything that reads bytes: make fuzz FUZZ_SECONDS=600
	@$(BIN)/python tests/fuzz/fuzz.py --seconds $(FUZZ_SECONDS)

# As root, with iproute2, nftables, e2fsprogs, xfsprogs and a C compiler; for delayed packets iptables and
# libnetfilter-queue-dev. What a machine lacks is skipped, by name.
FAULTS := $(VENV)/.faults
$(FAULTS): $(STAMP)
	@if $(PIP) -e '.[dev,faults]' 2>/dev/null; then touch $@; else \
	    echo "NetfilterQueue cannot be built, so nobody delays packets. On Debian: apt install gcc python3-dev libnetfilter-queue-dev" >&2; fi

faults: $(FAULTS) ## every fault on real daemons in network namespaces: root; make faults RUNS=3
	@$(BIN)/python -m tests.faults run --matrix --runs $(RUNS) --seconds $(RUN_SECONDS) --ledger docs/ledger/faults.ndjson

faults-planted: $(FAULTS) ## four bugs in how daemons meet their disks, each of which a nemesis must find: root, three minutes
	@$(BIN)/python -m tests.faults planted

kills: $(FAULTS) ## full load, and two leaders killed a minute: root; make kills MINUTES=10
	@$(BIN)/python -m tests.faults kills --minutes $(MINUTES) --ledger docs/ledger/kills.ndjson

soak: $(FAULTS) ## faults for hours on one domain, and nothing may grow: root; make soak HOURS=24
	@$(BIN)/python -m tests.faults soak --hours $(HOURS) --ledger docs/ledger/soak.ndjson

fresh: ## the two commands of the README in a fresh Debian, made by debootstrap: root, a quarter of an hour
	@tests/fresh/run.sh

systemd: deb ## the package under a real systemd, on three machines made by debootstrap: root, two minutes
	@PIP="$(abspath $(BIN)/python) -m pip" $(PYTHON) tests/fresh/systemd.py "$$(ls -t build/groupsvc_*.deb | head -n 1)"

# For packagers: make install DESTDIR=/tmp/stage PREFIX=/usr.
install: $(STAMP) man ## put daemon, unit, user and configuration in place: DESTDIR, PREFIX (/usr/local)
	@PIP="$(abspath $(BIN)/python) -m pip" PYTHON=$(PYTHON) PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) sh daemon/packaging/install.sh

deb: $(STAMP) man ## a package for this machine's Debian, in build
	@PIP="$(abspath $(BIN)/python) -m pip" PYTHON=$(PYTHON) sh daemon/packaging/deb.sh

clean: ## remove everything that make made
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis histories
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
