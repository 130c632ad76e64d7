# Needs Go, git and make; check also gcc, for the race detector.
GO ?= go
FUZZTIME ?= 1m
SOAKTIME ?= 10m
PROGRAMS ?= 200000
MUTANTS ?= 160
# One setting for all that is built, so that each package is compiled once: for the
# tests, for p4lb, and for the programs that tests build.
export CGO_ENABLED := 0
export GOFLAGS += -trimpath
COMMIT := $(shell git describe --always --abbrev=40 --exclude='*' --dirty=+dirty 2>/dev/null)
# The heaps of tests, the compiler and the linker are small: they were collected over and
# over, for a third of the CPU time.
FEWGC := GOGC=800
# What go test vets, and of all that is imported, check vets too, and once. One package
# more than there are cores: some tests wait.
TEST := $(FEWGC) $(GO) test -vet=off -timeout 30m -p $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# Where code or tests start goroutines, or use unsafe, the race detector has something to see.
RACED = $(shell grep -rlE --include='*.go' '^[[:space:]]*go [a-zA-Z_]|[.]Go[^a-zA-Z]|"net/http|"unsafe"' . | grep -v testdata | xargs -n1 dirname | sort -u)
.PHONY: help build test golden fuzz differential mutation arm64 soak bench check demo release site recording

build: # one static binary, bin/p4lb
	$(FEWGC) $(GO) build -ldflags "-X github.com/p4lb/p4lb/internal/provenance.commit=$(COMMIT)" -o bin/p4lb ./cmd/p4lb

test: # all tests; soak waits for longest, and begins
	$(TEST) ./tools/soak ./...

golden: # rewrites the expected outputs: read the difference before committing it
	$(GO) test $$(grep -rl --include='*_test.go' 'flag.Bool("update"' . | xargs -n1 dirname | sort -u) -update

fuzz: # every fuzz target in turn, FUZZTIME each
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' . | sed 's|/[^/]*:func | |' | \
	while read -r dir name; do \
		$(GO) test "$$dir" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x || exit 1; \
	done

differential: # PROGRAMS random programs against an evaluator of P4 source
	$(GO) run ./tools/differential -programs $(PROGRAMS)

mutation: # MUTANTS changes to the code, each run against the tests that execute it
	$(FEWGC) $(GO) run ./tools/mutation -n $(MUTANTS)

arm64: # tests of the machine code for arm64, with Debian's qemu-user-static
	GOARCH=arm64 $(TEST) -short -exec qemu-aarch64-static ./internal/dataplane/...

soak: build # attacks for SOAKTIME: input that once hung p4lb or took the memory
	$(GO) run ./tools/soak -p4lb bin/p4lb -for $(SOAKTIME)

bench: build # speed, on this machine
	bin/p4lb bench

check: # format, prose, vet, staticcheck, vulnerabilities, races, tidy, goldens: all but the tests
	@test -z "$$(gofmt -l .)" || { gofmt -d .; exit 1; }
	$(GO) run ./tools/prose # comments, strings and documents
	$(FEWGC) $(GO) vet ./...
	$(FEWGC) $(GO) vet -tags closures ./internal/dataplane/asm # what the line above does not see
	GOGC=200 $(GO) tool staticcheck ./...
	GOGC=200 $(GO) run ./tools/vuln ./... # needs vuln.go.dev, or GOVULNDB
	$(TEST) -tags closures ./internal/dataplane/... ./internal/sim # the reference engine
	CGO_ENABLED=1 $(TEST) -race -short $(RACED)
	$(GO) mod tidy -diff
	$(GO) generate ./... && git diff --exit-code -- p4src

demo: build # QALL against DRILL, LetFlow and ECMP, every switch running its generated program
	@bin/p4lb lab run examples/demo.yaml -o build/demo

release: # archives for linux and darwin, packages (deb, rpm), SBOMs and checksums, in dist
	$(GO) run ./tools/release -o dist

site: # the documents as HTML, in build/site
	$(GO) run ./tools/docs/site -o build/site

recording: build # docs/session.svg, from the commands of docs/session.txt
	$(GO) run ./tools/docs/recording -rows 36 docs/session.txt

help: # this list
	@sed -n 's/^\([a-z0-9]*\):[^#]*# */\1\t/p' $(MAKEFILE_LIST)
