# run · test · desktop-test · ui-test · lint · bench · package · cross · icons · screenshots · conformance · soak · fuzz · limits · types.
# Each target installs what it needs and the machine lacks: on Debian and Ubuntu by apt; elsewhere it names what is missing.

CARGO ?= cargo
# Tools from crates.io that are no dependency of the product, built once and kept.
TOOLS := $(CURDIR)/target/tools
export PATH := $(PATH):$(TOOLS)/bin
# MCP clients from npm and PyPI that the suite tests/clients drives.
NODE_CLIENTS := tests/clients/node/node_modules/.installed
CONFORMANCE := tests/conformance/node_modules/.installed
PYTHON_CLIENTS := tests/clients/python/.venv/.installed
UI := ui/dist/index.html
# Where cargo puts what it builds.
BUILT := $(abspath $(or $(CARGO_TARGET_DIR),target))
UI_MODULES := ui/node_modules/.installed
UI_TESTS := tests/ui/node_modules/.installed
# nextest where it is installed: it runs the suites beside each other. Suites wait more than they compute.
TESTS := $(shell $(CARGO) nextest --version >/dev/null 2>&1 && echo 'nextest run --no-fail-fast' || echo 'test --no-fail-fast')
export RUST_TEST_THREADS ?= 6
export NEXTEST_TEST_THREADS ?= 6
# The same random histories in every run, so that a failure is of the change that is tested; `make soak` looks for new ones.
test: export PROPTEST_RNG_SEED ?= 1

# What is downloaded is asked for again where a network hiccups.
export CARGO_NET_RETRY ?= 10
export npm_config_fetch_retries ?= 6
export PIP_RETRIES ?= 10
APT := apt-get -o Acquire::Retries=6 -o DPkg::Lock::Timeout=300

# A display, or a system that always has one.
SCREEN := $(or $(WAYLAND_DISPLAY),$(DISPLAY),$(filter Windows_NT,$(OS)),$(filter Darwin,$(shell uname -s)))

.PHONY: run run-desktop run-terminal ui icons test desktop-test ui-test clients conformance soak package cross screenshots lint limits types bench fuzz fuzz-short

# Starts the tray application; without a display, the same engines in this terminal.
run: $(if $(SCREEN),run-desktop,run-terminal)
# Both binaries in one build: the command line, for a second terminal, and the application.
run-desktop: desktop-machine $(UI)
	$(CARGO) build --quiet -p holdfast -p holdfast-desktop --features holdfast-desktop/desktop
	$(BUILT)/debug/holdfast-desktop
run-terminal: machine $(UI)
	$(CARGO) build --quiet -p holdfast
	$(BUILT)/debug/holdfast serve

# The window, as the files that both binaries carry.
ui: $(UI)
$(UI): $(UI_MODULES) $(shell find ui/src ui/index.html icons/app.svg ui/*.config.* ui/tsconfig.json locale -type f)
	cd ui && npm run --silent build
$(UI_MODULES): ui/package-lock.json | node-machine
	cd ui && npm ci --no-audit --no-fund --loglevel=error && touch node_modules/.installed

# The rendered icons are kept in the repository; this makes them again.
icons: machine
	@$(call install,rsvg-convert:librsvg2-bin python3:python3,true)
	icons/render

# The Debian package, in target/package. The packages of other systems come from Tauri's own tool, on those systems and with the tray
# application alone in them:  npx @tauri-apps/cli@2 build --bundles rpm|dmg|nsis
package: desktop-machine $(UI)
	@$(call install,dpkg-shlibdeps:dpkg-dev lintian:lintian,true)
	$(CARGO) build --locked --release -p holdfast -p holdfast-desktop --features holdfast-desktop/desktop,holdfast-desktop/custom-protocol
	rm -f target/package/*.deb
	packaging/deb $(BUILT)/release
	lintian --allow-root --fail-on error,warning target/package/*.deb

# Whether the product compiles for Windows and macOS, on Debian. Its tests drive processes as only Unix has them.
cross: desktop-machine $(UI)
	@$(call install,,test -x /usr/bin/rustc -a -d /usr/lib/rustlib/src || echo rustc-web rust-web-src libstd-rust-web-dev)
	packaging/cross --workspace --exclude holdfast-testkit --exclude holdfast-bench --features desktop

# The pictures of the documentation, of the real thing.
screenshots: test-machine $(UI) $(UI_TESTS)
	@$(call install,xfce4-panel:xfce4-panel xfconf-query:xfconf xdotool:xdotool convert:imagemagick dbus-run-session:dbus,true)
	$(CARGO) build -p holdfast -p holdfast-desktop --features holdfast-desktop/desktop
	docs/pictures/make $(BUILT)/debug

# Everything. The binary first: cargo does not build another package's binary for tests.
test: test-machine $(UI) clients $(CONFORMANCE)
	$(CARGO) build -p holdfast
	$(CARGO) $(TESTS) --workspace --features $(TYPES)
	$(MAKE) --no-print-directory desktop-test ui-test

# The real tray application on an X server and a session bus of its own.
desktop-test: test-machine $(UI)
	$(CARGO) build -p holdfast
	$(CARGO) $(TESTS) -p holdfast-desktop --features desktop-test --test ipc --test tray --test window --test package

# The window in Chromium, against the binary that was built; its types first. A file that fails is run once more, and said to be flaky.
ui-test: test-machine $(UI) $(UI_TESTS)
	$(CARGO) build -p holdfast
	$(CARGO) build -p holdfast-testkit --example discord
	cd ui && npm run --silent check
	cd tests/ui && HOLDFAST_BIN=$(BUILT)/debug/holdfast ./run
$(UI_TESTS): tests/ui/package-lock.json | node-machine
	cd tests/ui && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && touch node_modules/.installed

# The official MCP conformance suite against the real binary, with its own words.
conformance: machine $(CONFORMANCE)
	tests/conformance/run

# The rounds that are too long for every day: whole graces, big results over slow paths, half-open base links, kills by the hundred.
soak: machine
	$(CARGO) build -p holdfast
	$(CARGO) $(TESTS) --test soak
	PROPTEST_CASES=20000 $(CARGO) test -p holdfast-core --lib model -- --nocapture
	ROUNDS=2000 BIG_ROUNDS=50 $(CARGO) test --test operations kills -- --nocapture
	KILLS=500 FREEZE=60 $(CARGO) test --test channels endurance -- --nocapture

clients: $(NODE_CLIENTS) $(PYTHON_CLIENTS)
$(NODE_CLIENTS): tests/clients/node/package-lock.json | test-machine
	cd tests/clients/node && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && touch node_modules/.installed
$(CONFORMANCE): tests/conformance/package-lock.json | test-machine
	cd tests/conformance && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error && touch node_modules/.installed
$(PYTHON_CLIENTS): tests/clients/python/requirements.txt | test-machine
	python3 -m venv tests/clients/python/.venv
	tests/clients/python/.venv/bin/pip install --quiet --disable-pip-version-check -r $<
	touch $@

# Commands that are needed, each with its Debian package: to build, to build the window, and to drive real clients and a real desktop.
BUILD_NEEDS := cc:build-essential pkg-config:pkg-config git:git
NODE_NEEDS := npm:npm node:nodejs
TEST_NEEDS := python3:python3 xvfb-run:xvfb Xvfb:xvfb dbus-daemon:dbus-daemon fakeroot:fakeroot gio:libglib2.0-bin openbox:openbox xdotool:xdotool WebKitWebDriver:webkit2gtk-driver chromium:chromium tmux:tmux
# Libraries that GUI toolkits link; other systems bring their own.
DESKTOP_NEEDS := case $$(uname -s) in Linux) pkg-config --exists webkit2gtk-4.1 2>/dev/null || echo libwebkit2gtk-4.1-dev; \
	pkg-config --exists ayatana-appindicator3-0.1 2>/dev/null || echo libayatana-appindicator3-dev; esac
install = missing=$$(for need in $(1); do command -v $${need%%:*} >/dev/null || echo $${need\#\#*:}; done; $(2)); \
	if [ -n "$$missing" ]; then \
	    command -v apt-get >/dev/null || { echo "missing:" $$missing; exit 1; }; \
	    sudo=$$([ $$(id -u) = 0 ] || echo sudo); \
	    for pause in 5 20 60 end; do \
	        $$sudo $(APT) update -qq && $$sudo $(APT) install -y -qq --no-install-recommends $$missing && break; \
	        [ $$pause != end ] || exit 1; sleep $$pause; \
	    done; \
	fi
.PHONY: machine node-machine desktop-machine test-machine
machine:
	@command -v $(CARGO) >/dev/null || { echo "Rust 1.90 or newer is missing: https://rustup.rs"; exit 1; }
	@$(call install,$(BUILD_NEEDS),true)
node-machine:
	@$(call install,$(NODE_NEEDS),true)
desktop-machine: machine node-machine
	@$(call install,,$(DESKTOP_NEEDS))
test-machine: desktop-machine
	@$(call install,$(TEST_NEEDS),python3 -c 'import ensurepip; import venv' 2>/dev/null || echo python3-venv)

# Formatting, clippy, the house suite, and what may enter the build.
lint: $(TOOLS)/cargo-deny-0.20.2
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --features $(TYPES) --quiet -- -D warnings
	$(CARGO) test --quiet --features $(TYPES) --test house
	cargo-deny --log-level error --workspace check bans licenses sources

# docs/limits.md, docs/errors.md and docs/CONFIG.md, from the tables in crates/core and the types of the configuration.
limits:
	UPDATE=1 $(CARGO) test --quiet --features $(TYPES) --test house pages

# ui/src/api/types.ts, from the Rust types that the window reads. `test` and `lint` notice when it is out of date.
TYPES := holdfast-desktop/ts
types:
	UPDATE=1 $(CARGO) test --quiet --features $(TYPES) --test house types

# One table: ours, the floor and the peers, in one run. ROUNDS=3 PEERS=0 for a quick look.
bench:
	$(CARGO) build --release --quiet -p holdfast -p holdfast-bench
	$(CARGO) run --release --quiet -p holdfast-bench

# Every decoder under arbitrary bytes: FUZZ_SECONDS per target (default 10 min), or a short run.
FUZZ_SECONDS ?= 600
fuzz: $(TOOLS)/cargo-fuzz-0.13.2
	fuzz/run $(FUZZ_SECONDS)
fuzz-short: $(TOOLS)/cargo-fuzz-0.13.2
	fuzz/run 15

$(TOOLS)/%:
	@name=$$(echo $* | sed 's/-[0-9.]*$$//'); version=$$(echo $* | sed 's/.*-//'); mkdir -p $(TOOLS); \
	command -v $$name >/dev/null || $(CARGO) install --locked --root $(TOOLS) --version $$version $$name
	@touch $@
