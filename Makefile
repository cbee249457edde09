# run · test · lint · bench · fuzz · limits. Each target installs what it needs and the machine lacks.

CARGO ?= cargo
# Tools from crates.io that are no dependency of the product, built once and kept.
TOOLS := $(CURDIR)/target/tools
export PATH := $(PATH):$(TOOLS)/bin

.PHONY: lint limits bench fuzz fuzz-short

# Formatting, clippy, the house suite, and what may enter the build.
lint: $(TOOLS)/cargo-deny-0.20.2
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	$(CARGO) test --quiet --test house
	cargo-deny --log-level error --workspace check bans licenses sources

# docs/limits.md and docs/errors.md, from the tables in crates/core.
limits:
	UPDATE=1 $(CARGO) test --quiet --test house pages

# One table: ours, the floor and the peers, in one run. ROUNDS=3 PEERS=0 for a quick look.
bench:
	$(CARGO) build --release --quiet -p holdfast -p holdfast-bench
	$(CARGO) run --release --quiet -p holdfast-bench

# Every decoder under arbitrary bytes: FUZZ_SECONDS per target (default 10 min), or the short run of CI.
FUZZ_SECONDS ?= 600
fuzz: $(TOOLS)/cargo-fuzz-0.13.2
	fuzz/run $(FUZZ_SECONDS)
fuzz-short: $(TOOLS)/cargo-fuzz-0.13.2
	fuzz/run 15

$(TOOLS)/%:
	@name=$$(echo $* | sed 's/-[0-9.]*$$//'); version=$$(echo $* | sed 's/.*-//'); mkdir -p $(TOOLS); \
	command -v $$name >/dev/null || $(CARGO) install --locked --root $(TOOLS) --version $$version $$name
	@touch $@
