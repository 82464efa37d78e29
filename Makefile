# Firn's chores. `make` alone lists them.

MODULES  := $(shell scripts/modules)
# The first waits for clusters of Redis most of the time, while others run.
PACKAGES := ./redisstore/... ./... $(filter-out ./redisstore/...,$(MODULES:%=./%/...))
LINTER   := v2.15.0
FUZZTIME ?= 500000x
FILES    ?= core.go,generator.go,steady.go,rollback.go,history.go
FOR      ?= 1h

.PHONY: help
help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

# One package compares what calls cost: it runs alone.
.PHONY: test
test: ## run all tests of all modules (installs the servers and clients they start)
	scripts/need-servers
	scripts/need-tools
	scripts/need-clients
	go test -timeout 30m $$(go list $(PACKAGES) | grep -v '/bench/report$$')
	go test ./bench/report

# Five packages only start processes, none built with the race detector, for a quarter of an hour. What
# these run is under it in the others. A sixth compares what calls cost. In the simulator one goroutine runs at a time.
.PHONY: race
race: ## run them under the race detector (needs a C compiler, installed if missing)
	scripts/need-gcc
	scripts/need-servers
	scripts/need-tools
	scripts/need-clients
	CGO_ENABLED=1 go test -timeout 40m -race $$(go list $(PACKAGES) | grep -v -e '/cmd/firn$$' -e '/e2e/leases$$' -e '/e2e/hostile$$' -e '/bench/languages$$' -e '/bench/openapi$$' -e '/bench/report$$' -e '/internal/sim$$')

# Counts, times and products must fit where an int has 32 bits. The simulator, the mutator and the
# programs that start servers run on 64 bits only.
.PHONY: test-386
test-386: ## run the library's tests with an int of 32 bits
	GOARCH=386 go vet ./...
	GOARCH=386 go test $$(go list ./... | grep -v -e /internal/mutate -e /internal/sim -e /storetest/servers)

.PHONY: cross
cross: ## build the library, the stores and the binary for Windows, macOS and FreeBSD
	@for target in windows/amd64 darwin/arm64 freebsd/amd64; do \
		echo "build for $$target"; \
		GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0 go build $(filter-out ./bench/...,$(PACKAGES)) || exit 1; \
	done

# Without grpc-go's tracing, which nothing uses here, the linker can drop methods that are never called: the binary is a
# quarter smaller, starts faster and occupies 3 MB less memory. It does not change what the command does.
.PHONY: build
build: ## build the binary as bin/firn
	CGO_ENABLED=0 go build -trimpath -buildvcs=auto -tags grpcnotrace -o bin/firn ./cmd/firn

.PHONY: release-dry
release-dry: ## build all files of a release into bin/release and the image, and try them (TARGETS=linux/amd64 for one platform)
	scripts/release-dry $(TARGETS)

.PHONY: fmt
fmt: ## format the code
	gofmt -w $$(git ls-files -co --exclude-standard '*.go')

.PHONY: fmt-check
fmt-check: ## fail if code is not formatted
	@files=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); test -z "$$files" || { echo "not formatted:"; echo "$$files"; exit 1; }

.PHONY: vet
vet: ## run go vet
	go vet $(PACKAGES)

.PHONY: lint
lint: .tools/golangci-lint-$(LINTER) ## run the linter, installed into .tools
	scripts/lint .tools/golangci-lint-$(LINTER)

.tools/golangci-lint-$(LINTER):
	GOWORK=off GOBIN=$(CURDIR)/.tools go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINTER)
	mv .tools/golangci-lint $@

.PHONY: fuzz
fuzz: ## fuzz every target, FUZZTIME (as 500000x, 10s) each
	scripts/fuzz $(FUZZTIME)

.PHONY: model
model: ## check the model of the lease protocol, and that it misses no guard
	model/check

.PHONY: simulate
simulate: ## play 10,000 histories of faults with the real generators and leases
	go run ./internal/sim/search -seeds 10000

.PHONY: mutants
mutants: ## check that the simulator finds wrong changes of the protocol
	go run ./internal/sim/mutants $(QUICK)

.PHONY: mutate
mutate: ## make every small wrong change of FILES (as 'lease/*.go') and find those that no test notices, for at most FOR (1h)
	@mkdir -p bin
	go run ./internal/mutate -files '$(FILES)' -for $(FOR) -results bin/mutants.jsonl

.PHONY: bench
bench: bench-serving bench-resp ## repeat the measurements of docs/benchmarks.md and its chart: servers, generators, processes, joins (a quarter of an hour)
	go run ./bench/report -chart docs/speed.svg
	go run ./bench/report start
	cd redisstore && go test . -run '^$$' -bench Join -benchtime 1x

.PHONY: bench-java
bench-java: ## measure generators of Java the same way (four minutes; needs Java 17 and Maven)
	mvn --quiet --batch-mode --file bench/java/pom.xml dependency:copy-dependencies
	java -cp 'bench/java/target/dependency/*' bench/java/Peers.java

.PHONY: bench-resp
bench-resp: build ## measure INCR of Firn beside that of redis-server, by redis-benchmark (three minutes)
	scripts/need-servers
	scripts/need-clients
	go run ./bench/resp

.PHONY: bench-serving
bench-serving: ## measure HTTP by wrk and gRPC by h2load, each beside a server that answers a constant (three minutes)
	scripts/need-clients
	go run ./bench/serving

.PHONY: bench-outage
bench-outage: ## measure how long calls take at half load, and while store, configuration and worker change (eight minutes)
	scripts/need-servers
	go run ./bench/outage

.PHONY: bench-keys
bench-keys: ## insert a million rows with each kind of key into MariaDB and PostgreSQL: time, sizes, what was written (up to half an hour)
	scripts/need-servers
	go run ./bench/keys -rounds 3

.PHONY: chaos
chaos: build ## do real faults to processes over every real store for an hour and a quarter (FOR each, STORES, SEED), and look for ids issued twice
	scripts/need-servers
	go run ./bench/chaos -firn bin/firn $(if $(FOR),-for $(FOR)) $(if $(STORES),-stores $(STORES)) $(if $(SEED),-seed $(SEED))

.PHONY: chaos-short
chaos-short: build ## the same for four minutes
	scripts/need-servers
	go run ./bench/chaos -firn bin/firn -short $(if $(SEED),-seed $(SEED))

.PHONY: stress
stress: build ## the published stress: 100 callers for 30 seconds into one set, three ways
	scripts/stress bin/firn

# Three minutes, and four more for downloads the first time.
.PHONY: doctor-versions
doctor-versions: ## have firn doctor say what Debian's servers do not show: over MySQL, old versions of others, and NFS
	scripts/need-versions
	go test -count 1 -run TestEachLineWasMadeRed ./cmd/firn/e2e/doctor -args -versions $(abspath .tools/versions)

.PHONY: hostile
hostile: ## attack a server from one address in each way we know, for FOR (5m) each, and measure what others see
	HOSTILE_FOR=$(or $(FOR),5m) go test -count 1 -timeout 4h -v -run Hostile ./cmd/firn/e2e/hostile

.PHONY: proto
proto: ## generate the code of proto/ (the tools are installed into .tools)
	scripts/proto

.PHONY: proto-check
proto-check: ## fail if the code of proto/ is not what is committed
	scripts/proto -check

.PHONY: reference
reference: ## generate docs/configuration.md and docs/firn.schema.json from the settings that the code declares
	go run ./cmd/firn/pages reference docs

.PHONY: man
man: ## write a manual page for each command into bin/man
	go run ./cmd/firn/pages manual bin/man

.PHONY: manifests
manifests: ## copy the alerts into the chart in deploy/helm, and render deploy/kubernetes.yaml from it
	scripts/need-tools
	cp deploy/prometheus-alerts.yaml deploy/helm/
	@{ sed '/^---/,$$d' deploy/kubernetes.yaml; .tools/helm-v* template firn deploy/helm --values deploy/kubernetes-values.yaml; } > deploy/kubernetes.new
	mv deploy/kubernetes.new deploy/kubernetes.yaml

.PHONY: tidy
tidy: ## tidy the go.mod files of all modules
	scripts/tidy

.PHONY: tidy-check
tidy-check: ## fail if a go.mod or go.sum is not tidy
	scripts/tidy -check

.PHONY: offwork
offwork: ## build each module as if published, without the workspace
	scripts/offwork

.PHONY: ci
ci: ## what CI runs
	.ci/run
