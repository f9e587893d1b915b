# The commands of this project. `make` alone lists them.

SHELL         := bash
.SHELLFLAGS   := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS     += --no-print-directory
# The folder of runc and ip on Debian, which some root shells lack.
export PATH   := $(PATH):/usr/sbin:/sbin

# One set of flags for binaries, tests and the local cluster, so that the go command compiles each
# package once: internal/dev/localcluster/gocommand.go has the same. Binaries depend only on the sources, not
# on place, time or checkout. For the race detector: CGO_ENABLED=1 make unit TESTFLAGS=-race
export GOFLAGS     := -trimpath -buildvcs=false -gcflags=all=-dwarf=false
export CGO_ENABLED ?= 0
# Compilers have memory, and so less to do. What runs in tests has the default.
COMPILE            := GOGC=400 go build

# The name of the image. On another cluster: a name that it can pull.
IMG       ?= localhost/conversion-operator:dev
# The name of the image of config/samples/crontab-image.
SAMPLE_IMG ?= localhost/crontab-converter:dev
# The name of the image of bundle/.
BUNDLE_IMAGE ?= localhost/conversion-operator-bundle:dev
# Another name for the same image: end-to-end tests upgrade from it.
UPGRADE_IMG ?= localhost/conversion-operator:upgrade
# The image's architecture.
ARCH      ?= $(shell go env GOARCH)
# Where end-to-end tests and the demo run: local, kind or current.
CLUSTER   ?= local
# What the nodes of the local cluster run in the demo: processes, or containers, which need root.
NODE      ?= processes
# The name of the cluster that cluster-up starts.
NAME      ?= conversion-operator
KUBECTL   ?= kubectl
# The version of Kubernetes of the local cluster and of integration tests, such as v1.36.3,
# a supported minor version such as 1.34, or oldest; empty for the newest.
KUBERNETES_VERSION ?=
# The folder of config/ that is deployed, and written by install-manifest, such as
# overlays/openshift.
OVERLAY   ?= default
# The number of packages that are tested at a time. API servers work also while tests wait: more of them at a time
# take more of the processors, and longer.
PARALLEL  ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# More flags for go test, such as -race or -run TestX.
TESTFLAGS ?=
# Ends a test that hangs, and no test that is slow because the machine is.
LIMIT     := -timeout=80m
# More flags for a benchmark, such as -time=2s.
BENCHFLAGS ?=

# The URL of the vulnerability database, such as file:///a/copy; empty for Go's own.
VULNDB    ?=

# How long each fuzzer runs, and a regular expression for their names.
FUZZTIME  ?= 30s
FUZZ      ?= .
SEEDS     ?= 100000
FIRST     ?= 1000
OBJECTS   ?= 400

# The duration of `make soak`, and its seed; empty for a new seed.
SOAKTIME  ?= 1h
SOAKSEED  ?=

# The folder of PATH into which install-plugin installs the kubectl plugin.
PLUGIN_DIR ?= $(HOME)/.local/bin

# The platforms that `make krew` packs, and the URL of the folder from which krew will fetch the
# archives.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
KREW_URI  ?= https://example.com/conversion-operator/$(KREW_VERSION)
# krew wants a semantic version.
KREW_VERSION ?= $(if $(filter v%,$(VERSION)),$(VERSION),v0.0.0-g$(VERSION))

# The version that binaries report.
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
REVISION  ?= $(shell git rev-parse --verify --quiet HEAD || echo unknown)
MODULE    := github.com/conversion-operator/conversion-operator
LDFLAGS    = -s -w -X $(MODULE)/internal/process.version=$(VERSION) -X $(MODULE)/internal/process.revision=$(REVISION)
GO_BUILD   = $(COMPILE) -ldflags '$(LDFLAGS)'
# The time of files in the image: that of the last commit.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
# The architectures that `make images` builds for.
ARCHES    ?= amd64 arm64

# What `make prose` checks.
PROSE := README.md api bundle config controllers internal

# The modules that lint and unit check besides the root. The commands that test modules with large
# dependencies also lint them, and check that they are tidy, so that only they download all of them.
MODULES := internal/dev/tools internal/test/chart internal/test/monitoring
LARGE   := internal/test/monitoring
LINT    := $(CURDIR)/bin/tools/golangci-lint run
TIDY    := $$(find . -name go.mod -not -path './bin/*' | xargs -n1 dirname)

# Every committed file that a command of this file generates.
GENERATED := internal/cli/playground/page/dist internal/cli/playground/page/dist.sha256 api/README.md api/docs/commands.md bundle config/chart/templates/generated '*zz_generated.*' config/crd/bases config/rbac/role.yaml config/rbac/grants/role.yaml config/rbac/audit/role.yaml '*go.mod' '*go.sum'

export CLUSTER IMG KUBERNETES_VERSION

##@ Development

.PHONY: generate
generate: bin/tools/controller-gen ## Generate Go code from the API types
	@bin/tools/controller-gen object:headerFile=internal/dev/tools/boilerplate.go.txt paths=./api/... paths=./config/samples/...

.PHONY: manifests
manifests: bin/tools/controller-gen ## Generate the CRD and the roles from the code's markers
	@bin/tools/controller-gen crd paths=./api/... output:crd:dir=config/crd/bases
	@go run -C internal/dev/tools ./crd $(CURDIR)/config/crd/bases/*.yaml
	@bin/tools/controller-gen rbac:roleName=conversion-operator paths=./controllers/... output:rbac:dir=config/rbac
	@bin/tools/controller-gen rbac:roleName=conversion-operator-grants paths=./internal/operator/plan/... output:rbac:dir=config/rbac/grants
	@bin/tools/controller-gen rbac:roleName=conversion-operator-audit paths=./internal/cli/audit/... output:rbac:dir=config/rbac/audit

.PHONY: api-reference
api-reference: bin/tools/crd-ref-docs ## Generate api/README.md from the API types
	@bin/tools/crd-ref-docs --log-level=ERROR --source-path=api --max-depth=20 --renderer=markdown \
		--config=internal/dev/tools/api-reference/config.yaml --templates-dir=internal/dev/tools/api-reference --output-path=api/README.md

.PHONY: cli-reference
cli-reference: ## Generate api/docs/commands.md from the commands
	@mkdir -p bin && go run ./internal/test/docs/commands > bin/commands.md && mv bin/commands.md api/docs/commands.md

.PHONY: bundle
bundle: ## Generate bundle/ for OLM; of a release with BUNDLE_VERSION=, BUNDLE_IMG= and BUNDLE_REPLACES=
	@go run -C internal/dev/tools ./bundle -root=../../.. -output=../../../bundle \
		-version='$(BUNDLE_VERSION)' -image='$(BUNDLE_IMG)' -replaces='$(BUNDLE_REPLACES)'

.PHONY: chart
chart: ## Generate the templates of config/chart, for Helm
	@go run ./internal/dev/chart

# Without their scripts, which npm would run as this user.
bin/npm/node_modules: internal/cli/playground/page/package.json internal/cli/playground/page/package-lock.json
	@internal/dev/tools/deps.sh npm
	@mkdir -p bin/npm && cp internal/cli/playground/page/package.json internal/cli/playground/page/package-lock.json internal/cli/playground/page/.npmrc bin/npm/
	@npm ci --prefix bin/npm --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null
	@touch bin/npm/node_modules

.PHONY: playground-page
playground-page: ## Build the page of the playground from internal/cli/playground/page/src, unless it is built
	@internal/cli/playground/page/build.sh

.PHONY: playground
playground: ## Build the playground as a static page with its engine as WebAssembly, into bin/playground
	@mkdir -p bin/playground
	@GOOS=js GOARCH=wasm $(COMPILE) -ldflags='-s -w' -o bin/playground/engine.wasm ./internal/cli/playground/wasm
	@gzip -9nf bin/playground/engine.wasm
	@cp "$$(go env GOROOT)/lib/wasm/wasm_exec.js" internal/cli/playground/page/worker.js bin/playground/
	@go run ./internal/cli/playground/static -output bin/playground
	@echo 'serve the folder bin/playground over HTTP, for example with: python3 -m http.server --directory bin/playground'

.PHONY: tidy
tidy: ## Tidy the go.mod of every module in the tree
	@for module in $(TIDY); do go mod tidy -C "$$module"; done

.PHONY: fmt
fmt: bin/tools/golangci-lint ## Format the code
	@bin/tools/golangci-lint fmt

.PHONY: lint
lint: bin/tools/golangci-lint prose ## Check the code's style, its language, and that imports point one way
	@for module in . $(MODULES); do (cd $$module && $(LINT)); done

# It matches phrases, and cannot judge prose.
.PHONY: prose
prose: ## Check the language of pages, comments and messages; part of lint
	@go run ./internal/test/docs/prose $(PROSE)

.PHONY: verify
verify: ## Check that everything generated is up to date and committed
	@internal/dev/tools/keep-times.sh $(GENERATED) -- $(MAKE) generate manifests api-reference cli-reference tidy bundle chart playground-page TIDY='. $(filter-out $(LARGE),$(MODULES))'
	@stale=$$(git ls-files --modified --others --exclude-standard -- $(GENERATED)); \
	if [[ -n $$stale ]]; then \
		git --no-pager diff -- $(GENERATED) | head -n 400 || true; \
		printf 'error: generated files are not what is committed:\n%s\nThey are up to date now. Review them and commit them (git add is enough to pass here).\n' "$$stale" >&2; \
		exit 1; \
	fi

.PHONY: licences
licences: ## Check the licences of all modules linked into the binary; part of unit
	@go test -count=1 -v ./internal/test/licences

# Not part of test: it queries https://vuln.go.dev, and the result of a test must not depend on the
# date. It fails if the database cannot be reached.
.PHONY: vulncheck
vulncheck: bin/tools/govulncheck ## Check the code of the binaries for known vulnerabilities; VULNDB= names a copy of the database
	@bin/tools/govulncheck $(if $(VULNDB),-db '$(VULNDB)') . ./internal/webhook/converter

##@ Test

# Unit and integration tests of all packages in one run: what waits for API servers leaves the processors
# to what computes.
.PHONY: test
test: modules vet bin/localcluster ## Run what every change has to pass: vet, and unit and integration tests, on a real kube-apiserver and without root
	@$(integrate) $(LONGEST) ./...

.PHONY: test-ci
test-ci: ## Run the stages of continuous integration: compile, verify, test, lint, test-modules, helm, browser, fuzz-short, test-e2e
	@internal/dev/tools/test.sh ci

.PHONY: test-release
test-release: ## Run what a release needs besides: promtool, sbom, reproducible, realworld, certmanager, crossplane, velero, integration-release, integration@1.36, integration@1.35, integration@1.34, integration@1.33, integration@oldest, helm@1.36, helm@1.35, helm@1.34, helm@1.33, helm@oldest, test-e2e-release, test-e2e@oldest, soak-short, fuzz
	@internal/dev/tools/test.sh release

# What all tests and binaries link, once: stages that run side by side find it in the build cache.
.PHONY: compile
compile: bin/localcluster build
	@bin/localcluster build
	@$(MAKE) vet

.PHONY: vet
vet: ## Check the code of all packages for mistakes that Go knows
	@echo 'checking all packages: for seconds, or for some minutes if the build cache is empty'
	@GOGC=400 go vet -tags=integration,e2e,browser ./...

# vet has checked the packages, and go test would check them again.
.PHONY: unit
unit: ## Test packages without a cluster
	@go test -vet=off $(LIMIT) $(TESTFLAGS) ./...

.PHONY: test-modules
test-modules: ## Test what is in modules of their own: the bundle, the chart, and alerts and dashboard with the engine of Prometheus
	@for module in $(MODULES); do go test -C $$module -vet=off $(LIMIT) $(TESTFLAGS) ./...; done

# promtool reads the rules of the PrometheusRule from a plain file beside their tests.
.PHONY: promtool
promtool: bin/promtool/promtool ## Test the alerts, with Prometheus' own promtool
	@go mod tidy -C internal/test/monitoring -diff
	@cp internal/test/monitoring/testdata/*_test.yaml bin/promtool/
	@sed -n '/^  groups:/,$$s/^  //p' config/components/prometheus/rules.yaml >bin/promtool/rules.yaml
	@cd bin/promtool && ./promtool check rules rules.yaml && ./promtool test rules *_test.yaml

.PHONY: fuzz
fuzz: ## Run each fuzzer for FUZZTIME=30s, and list them; FUZZ='Put$$' runs some
	@internal/dev/tools/fuzz.sh '$(FUZZTIME)' '$(FUZZ)'

.PHONY: fuzz-seeds
fuzz-seeds: ## Try the laws of conversion named by FUZZ='Forged$$' in SEEDS=100000 worlds from FIRST=1000 on, with OBJECTS=400 in each, for FUZZTIME each, and count worlds and steps
	go test ./internal/engine/conversion -run '^Fuzz.*($(FUZZ))' -timeout 0 -v -seeds '$(SEEDS)' -first '$(FIRST)' -objects '$(OBJECTS)' -for '$(FUZZTIME)' | grep -v -e '^=== ' -e '--- PASS: .*/'

.PHONY: fuzz-short
fuzz-short: ## Run each fuzzer with a number of inputs, all of them in some two minutes
	@internal/dev/tools/fuzz.sh short

.PHONY: browser
browser: build playground ## Test HTML reports and the playground in Chromium, which is installed if missing
	@internal/dev/tools/deps.sh chromium
	@go test -vet=off -count=1 $(LIMIT) -tags=browser $(TESTFLAGS) ./internal/test/browser

.PHONY: realworld
realworld: bin/tools/golangci-lint ## Test policies against other projects' own conversions; downloads those projects
	@for module in internal/test/realworld internal/test/realworld/older; do (cd $$module && go mod tidy -diff && $(LINT)); done
	@go test -C internal/test/realworld $(LIMIT) $(TESTFLAGS) ./...

# Packages run side by side: each has API servers of its own, and waits for them. vet has checked them. Those that wait the
# longest come first, or they would run alone at the end.
LONGEST = ./internal/test/manager ./internal/test/install ./internal/migration
integrate = assets=$$(bin/localcluster assets) && KUBEBUILDER_ASSETS=$$assets KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m \
	go test -vet=off -p=$(PARALLEL) -count=1 $(LIMIT) -tags=integration $(TESTFLAGS)

.PHONY: integration
integration: bin/localcluster ## Test on a real kube-apiserver and etcd
	@$(integrate) $$(grep -rl --include='*_test.go' --exclude-dir=chart '^//go:build integration' . | xargs -r -n1 dirname | sort -u)

.PHONY: integration-release
integration-release: ## Test on a real kube-apiserver and etcd, including slow tests, and attack a converter for an hour
	@TEST_RELEASE=1 $(MAKE) --no-print-directory integration
	@TEST_RELEASE=1 go test -vet=off -count=1 $(LIMIT) $(TESTFLAGS) ./internal/webhook/converter

.PHONY: certmanager
certmanager: bin/localcluster bin/tools/golangci-lint ## Test certificates with cert-manager's own controllers, on a real kube-apiserver; downloads cert-manager
	@cd internal/test/certmanager && go mod tidy -diff && $(LINT)
	@KUBEBUILDER_ASSETS=$$(bin/localcluster assets) KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m \
		go test -C internal/test/certmanager -count=1 $(LIMIT) $(TESTFLAGS) ./...

.PHONY: crossplane
crossplane: bin/localcluster ## Test policies for kinds that Crossplane's core generates, on a real kube-apiserver; downloads and builds Crossplane
	@go mod tidy -C internal/test/crossplane -diff
	@$(COMPILE) -C internal/test/crossplane -o ../../../bin/crossplane github.com/crossplane/crossplane/v2/cmd/crossplane
	@CROSSPLANE=$$PWD/bin/crossplane CROSSPLANE_CRDS=$$(go list -C internal/test/crossplane -m -f '{{.Dir}}' github.com/crossplane/crossplane/v2)/cluster/crds \
		KUBEBUILDER_ASSETS=$$(bin/localcluster assets) KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m \
		go test -count=1 $(LIMIT) -tags=integration,crossplane -run=TestCrossplane $(TESTFLAGS) ./internal/test/manager

.PHONY: velero
velero: bin/localcluster bin/tools/golangci-lint ## Back up, convert and restore objects with Velero's own code, on real kube-apiservers; downloads Velero
	@cd internal/test/velero && go mod tidy -diff && $(LINT)
	@KUBEBUILDER_ASSETS=$$(bin/localcluster assets) KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m \
		go test -C internal/test/velero -count=1 $(LIMIT) $(TESTFLAGS) ./...

.PHONY: helm
helm: bin/localcluster bin/tools/helm ## Install, upgrade, roll back and uninstall the chart with Helm, on a real kube-apiserver
	@KUBEBUILDER_ASSETS=$$(bin/localcluster assets) KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m \
		go test -C internal/test/chart -count=1 $(LIMIT) -tags=integration $(TESTFLAGS) ./...

# Runs the end-to-end tests.
play = internal/dev/tools/deps.sh jq && E2E_IMAGE='$(IMG)' RESTART=1 AUDIT_POLICY=internal/test/e2e/testdata/audit-policy.yaml internal/dev/tools/with-cluster.sh e2e bash -c \
	'go test -vet=off -count=1 $(LIMIT) -parallel=4 -tags=e2e -exec="$$INSIDE" $(TESTFLAGS) ./internal/test/e2e/...'

.PHONY: test-e2e
test-e2e: deps image bin/localcluster ## Test in real pods; CLUSTER=local (default, needs root), kind or current
	@$(play)

.PHONY: test-e2e-release
test-e2e-release: export TEST_RELEASE = 1
test-e2e-release: deps image sample-image upgrade-image bin/localcluster ## Test in real pods, including slow stories, and the local cluster itself
	@go mod tidy -C internal/dev/localcluster/modules -diff
	@[[ $(CLUSTER) != local ]] || go test -vet=off -count=1 $(LIMIT) -tags=e2e $(TESTFLAGS) ./internal/dev/localcluster/...
	@export E2E_CONVERTER_IMAGE='$(SAMPLE_IMG)' E2E_UPGRADE_IMAGE='$(UPGRADE_IMG)' ARCHIVES='bin/crontab-converter.tar bin/upgrade.tar'; \
	$(play)

.PHONY: soak
soak: build bin/localcluster ## Perform random actions and failures for SOAKTIME=1h on nodes of processes, and check the operator's invariants; SOAKSEED= repeats a sequence
	@$(COMPILE) -o bin/soak ./internal/test/soak/cmd
	@export CLUSTER=local NODE=processes RESTART=1 E2E_IMAGE='$(IMG)'; internal/dev/tools/with-cluster.sh soak bash -c \
		'$$INSIDE bin/soak -time=$(SOAKTIME) $(if $(SOAKSEED),-seed=$(SOAKSEED))'

# Its steps include a promotion, a removal with accepted losses, a foreign spec.conversion, a move
# into another fleet, the end of a policy, fleets that lose pods or rulesets, and killed nodes.
.PHONY: soak-short
soak-short: ## Run soak for three minutes, always with the same steps
	@$(MAKE) soak SOAKTIME=150s SOAKSEED=41345

# The first run builds that version, for about ten minutes, into its own cache.
.PHONY: test-oldest
test-oldest: export KUBERNETES_VERSION = oldest
test-oldest: ## Run integration, helm and test-e2e on the oldest supported Kubernetes
	@internal/dev/tools/test.sh integration-release helm certmanager test-e2e-release

##@ Benchmarks

.PHONY: bench
bench: bench-conversion bench-lists bench-scale bench-migration ## Compare the project with others

bench = KUBEBUILDER_ASSETS=$$(bin/localcluster assets) go run ./internal/dev/bench

.PHONY: bench-conversion
bench-conversion: ## Measure conversion webhooks alone
	@go run ./internal/dev/bench conversion $(BENCHFLAGS)

.PHONY: bench-lists
bench-lists: build bin/localcluster ## Measure what conversions add to lists of an API server; of other objects with BENCHFLAGS="-size=100 -count=500"
	@$(bench) lists $(BENCHFLAGS)

.PHONY: bench-scale
bench-scale: build bin/localcluster bin/cainjector ## Measure one manager and one fleet with 1,000 CustomResourceDefinitions, and 200 and 1,000 policies; less with BENCHFLAGS="-definitions=100 -policies=50"
	@$(bench) scale $(BENCHFLAGS)

.PHONY: bench-migration
bench-migration: build bin/localcluster ## Measure migrations; takes an hour, less with BENCHFLAGS="-objects=2000 -setup=rules"
	@$(bench) migration $(BENCHFLAGS)

##@ Local cluster

# If CLUSTER is not set by the user, the demo uses kind if installed.
.PHONY: demo
demo: ## Watch two CustomResourceDefinitions convert, migrate and be pruned, on kind where that is installed; KEEP=1 leaves the cluster up
	@$(MAKE) demo-on-cluster CLUSTER="$$($(if $(filter file,$(origin CLUSTER)),internal/dev/tools/choose-cluster.sh,echo '$(CLUSTER)'))"

.PHONY: demo-on-cluster
demo-on-cluster: $(if $(filter localprocesses,$(CLUSTER)$(NODE)),build,deps image) $(if $(filter local,$(CLUSTER)),bin/localcluster)
	@$(COMPILE) -o bin/demo ./internal/dev/demo
	@export E2E_IMAGE='$(IMG)' NODE='$(NODE)'; internal/dev/tools/with-cluster.sh demo bash -c '$$INSIDE bin/demo'

.PHONY: cluster-up
cluster-up: bin/localcluster ## Start a local cluster with one node (needs root); NAME= tells clusters apart
	@internal/dev/tools/deps.sh node runc ip
	@bin/localcluster up --name '$(NAME)'

.PHONY: cluster-down
cluster-down: bin/localcluster ## Stop the local cluster and remove its files
	@bin/localcluster down --name '$(NAME)'

##@ Build

.PHONY: modules
modules:
	@said=$$(go list -deps . 2>&1 >/dev/null) || { printf 'error: the Go modules in go.mod are neither here nor can be downloaded; check the network, or GOPROXY: %s\n' "$$(grep -v '^go: downloading' <<<"$$said" | head -n 1)" >&2; exit 1; }

.PHONY: build
build: modules ## Build bin/conversion-operator, and bin/converter for converter pods
	@echo 'building the operator: for seconds, or for some minutes if the build cache is empty'
	@$(GO_BUILD) -o bin/ . ./internal/webhook/converter

.PHONY: install-plugin
install-plugin: build ## Install `kubectl conversion`, with its completion, into PLUGIN_DIR=~/.local/bin
	@install -D bin/conversion-operator '$(PLUGIN_DIR)/kubectl-conversion'
	@ln -sf kubectl-conversion '$(PLUGIN_DIR)/kubectl_complete-conversion'

.PHONY: krew
krew: ## Pack kubectl's plugin for PLATFORMS, with krew's manifest, into bin/krew; KREW_URI= is where the archives will be
	@rm -rf bin/krew
	@for platform in $(PLATFORMS); do \
		export GOOS=$${platform%/*} GOARCH=$${platform#*/}; \
		file=bin/krew/$$GOOS-$$GOARCH/kubectl-conversion; [[ $$GOOS != windows ]] || file=$$file.exe; \
		$(GO_BUILD) -o "$$file" .; \
	done
	@internal/dev/tools/krew.sh '$(KREW_VERSION)' '$(KREW_URI)' bin/krew

.PHONY: image
image: binary-$(ARCH) ## Build the image IMG for ARCH as bin/image.tar
	@internal/dev/tools/deps.sh image-builder
	@echo 'building the image $(IMG)'
	@internal/dev/tools/image.sh build '$(IMG)' '$(ARCH)' 'VERSION=$(VERSION)' 'REVISION=$(REVISION)'

.PHONY: sample-image
sample-image: ## Build the image of the sample converter as bin/crontab-converter.tar
	@internal/dev/tools/deps.sh image-builder
	@echo 'building the image $(SAMPLE_IMG)'
	@GOOS=linux GOARCH=$(ARCH) $(COMPILE) -ldflags='-s -w' -o bin/linux-$(ARCH)/crontab-converter ./config/samples/crontab-image/converter
	@ARCHIVE=bin/crontab-converter.tar DOCKERFILE=config/samples/crontab-image/Dockerfile internal/dev/tools/image.sh build '$(SAMPLE_IMG)' '$(ARCH)'

.PHONY: upgrade-image
upgrade-image: binary-$(ARCH) ## Build the same image under the name UPGRADE_IMG, as bin/upgrade.tar
	@internal/dev/tools/deps.sh image-builder
	@ARCHIVE=bin/upgrade.tar internal/dev/tools/image.sh build '$(UPGRADE_IMG)' '$(ARCH)' 'VERSION=$(VERSION)' 'REVISION=$(REVISION)'

.PHONY: images
images: $(ARCHES:%=binary-%) ## Build the image IMG for ARCHES='amd64 arm64', and an index of both, as bin/images.tar
	@internal/dev/tools/deps.sh image-builder
	@echo 'building the images $(IMG) for $(ARCHES)'
	@internal/dev/tools/image.sh index oci-archive:bin/images.tar '$(IMG)' '$(ARCHES)' 'VERSION=$(VERSION)' 'REVISION=$(REVISION)'

.PHONY: push-images
push-images: images ## Push the images of all ARCHES, and their index, to the registry that IMG names
	@internal/dev/tools/image.sh index 'docker://$(IMG)' '$(IMG)' '$(ARCHES)' 'VERSION=$(VERSION)' 'REVISION=$(REVISION)'

.PHONY: bundle-image
bundle-image: ## Build the image of bundle/, BUNDLE_IMAGE, as bin/bundle.tar
	@internal/dev/tools/deps.sh image-builder
	@ARCHIVE=bin/bundle.tar DOCKERFILE=bundle/bundle.Dockerfile CONTEXT=bundle internal/dev/tools/image.sh build '$(BUNDLE_IMAGE)' '$(ARCH)'

binary-%: modules
	@echo 'building the operator for linux/$*: for seconds, or for some minutes if the build cache is empty'
	@mkdir -p bin/linux-$* && GOOS=linux GOARCH=$* $(GO_BUILD) -o bin/linux-$*/ . ./internal/webhook/converter

.PHONY: reproducible
reproducible: ## Build binary and images twice, from copies of the sources, and compare
	@internal/dev/tools/deps.sh image-builder
	@internal/dev/tools/reproducible.sh '$(ARCH)' '$(VERSION)' '$(REVISION)'

.PHONY: sbom
sbom: build bin/tools/cyclonedx-gomod ## Write the binary's software bill of materials as bin/sbom.json, in CycloneDX format
	@rm -f bin/sbom.json
	@bin/tools/cyclonedx-gomod bin -json -std -noserial -version '$(VERSION)' -output bin/modules.json bin/conversion-operator
	@go run ./internal/test/licences/sbom bin/conversion-operator bin/modules.json bin/sbom.json

.PHONY: install-manifest
install-manifest: bin/deploy ## Write all manifests of the installation, with the image IMG, as bin/install.yaml
	@bin/tools/kustomize build bin/deploy >bin/install.yaml

.PHONY: release
release: bin/tools/helm ## Build what a release publishes, into bin/release; needs VERSION=v1.2.3, RELEASE_IMAGE= and RELEASE_URI=
	@internal/dev/tools/deps.sh jq image-builder
	@internal/dev/tools/release.sh '$(VERSION)' '$(RELEASE_IMAGE)' '$(RELEASE_URI)' bin/release

.PHONY: try-release
try-release: bin/localcluster bin/tools/helm ## Install bin/release on a fresh local cluster, from its files alone, and convert objects with it
	@internal/dev/tools/deps.sh $(deps.local)
	@CLUSTER=local IMAGE=$$(echo bin/release/*-images.tar) internal/dev/tools/with-cluster.sh release internal/dev/tools/try-release.sh bin/release

.PHONY: push
push: image ## Push the image to the registry that IMG names
	@internal/dev/tools/image.sh push '$(IMG)'

##@ Deployment, on the current cluster

.PHONY: install
install: ## Install the CustomResourceDefinition of ConversionPolicy
	@$(KUBECTL) apply --server-side -k config/crd

.PHONY: uninstall
uninstall: no-policies ## Remove the CustomResourceDefinition of ConversionPolicy
	@$(KUBECTL) delete --ignore-not-found -k config/crd

.PHONY: deploy
deploy: bin/deploy ## Install the operator with the image IMG
	@$(KUBECTL) apply --server-side -k bin/deploy

.PHONY: undeploy
undeploy: bin/deploy no-policies ## Remove the operator
	@$(KUBECTL) delete --ignore-not-found -k bin/deploy

# Policies must be deleted while the operator runs: it blocks the deletion of those that still
# convert, and without it the deletion would wait forever.
.PHONY: no-policies
no-policies:
	@policies=$$($(KUBECTL) get conversionpolicies.conversion-operator.io -o name 2>/dev/null || true); \
	if [[ -n $$policies ]]; then \
		printf 'error: delete the policies first, and see in their status why one does not go:\n%s\n' "$$policies" >&2; \
		exit 1; \
	fi

# A kustomization on top of config/, so that setting the image changes no committed file.
.PHONY: bin/deploy
bin/deploy: bin/tools/kustomize
	@rm -rf bin/deploy && mkdir -p bin/deploy
	@echo 'resources: [../../config/$(OVERLAY)]' >bin/deploy/kustomization.yaml
	@cd bin/deploy && ../tools/kustomize edit set image 'localhost/conversion-operator=$(IMG)'

##@ Set-up

deps.local   := node runc ip image-builder
deps.kind    := kind kubectl image-builder
deps.current := kubectl image-builder

.PHONY: deps
deps: ## Install missing dependencies of test-e2e and the demo, or list them
	@internal/dev/tools/deps.sh $(deps.$(CLUSTER))

.PHONY: clean
clean: ## Remove everything that was built here
	@rm -rf bin

.PHONY: help
help: ## List the commands
	@awk 'BEGIN {FS = ":.*## "; print "Usage: make COMMAND [VARIABLE=value]"} \
		/^##@ / {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  %-17s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

# The development tools, pinned in internal/dev/tools/go.mod and built once.
package.controller-gen := sigs.k8s.io/controller-tools/cmd/controller-gen
package.crd-ref-docs   := github.com/elastic/crd-ref-docs
package.cyclonedx-gomod := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod
package.golangci-lint  := github.com/golangci/golangci-lint/v2/cmd/golangci-lint
package.esbuild        := github.com/evanw/esbuild/cmd/esbuild
package.govulncheck    := golang.org/x/vuln/cmd/govulncheck
package.kustomize      := sigs.k8s.io/kustomize/kustomize/v5

bin/tools/%: internal/dev/tools/go.mod
	@echo 'building $*'
	@$(COMPILE) -C internal/dev/tools -ldflags='-s -w' -o ../../../$@ $(package.$*)

# The version of the libraries that the tests of the chart use.
bin/tools/helm: internal/test/chart/go.mod
	@echo 'building helm'
	@$(COMPILE) -C internal/test/chart -ldflags='-s -w' -o ../../../$@ helm.sh/helm/v4/cmd/helm

# Always run: go detects changes best, and is fast without any.
.PHONY: bin/localcluster
bin/localcluster: modules
	@[[ -e $@ ]] || echo 'building $@'
	@$(COMPILE) -o bin/localcluster ./internal/dev/localcluster/cmd

.PHONY: bin/cainjector
bin/cainjector:
	@$(COMPILE) -C internal/test/certmanager -ldflags='-s -w' -o ../../../$@ ./cainjector

# The version that the tests of alerts use. Its service discoveries, which are most of it, are omitted.
bin/promtool/promtool: internal/test/monitoring/go.mod
	@echo 'building promtool'
	@mkdir -p bin/promtool
	@$(COMPILE) -C internal/test/monitoring -tags=remove_all_sd -ldflags='-s -w' -o ../../../$@ github.com/prometheus/prometheus/cmd/promtool
