# Needs Go, git and make; check also gcc, for the race detector.
GO ?= go
FUZZTIME ?= 1m
.PHONY: build test golden fuzz bench check demo

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/p4lb ./cmd/p4lb

test:
	$(GO) test ./...

golden: # rewrites the expected outputs: read the difference before committing it
	$(GO) test $$(grep -rl --include='*_test.go' 'flag.Bool("update"' . | xargs -n1 dirname | sort -u) -update

fuzz: # every fuzz target in turn, FUZZTIME each
	@grep -rHo --include='*_test.go' '^func Fuzz[A-Za-z0-9]*' . | sed 's|/[^/]*:func | |' | \
	while read -r dir name; do \
		$(GO) test "$$dir" -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) || exit 1; \
	done

bench: build
	bin/p4lb bench

check:
	@test -z "$$(gofmt -l .)" || { gofmt -d .; exit 1; }
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) test -race -short ./... # the long sweeps have but one goroutine: test runs them
	$(GO) mod tidy -diff
	$(GO) generate ./... && git diff --exit-code -- p4src

demo: build # compiles the examples, generates QALL, and sends packets through what came out
	@mkdir -p build && for p in examples/*.p4; do name=build/$$(basename $$p .p4); \
		bin/p4lb compile $$p -o $$name.json --p4info $$name.p4info.txtpb && \
		bin/p4lb test $$name.json $${p%.p4}.stf || exit 1; \
	done
	@bin/p4lb gen --scheme qall-poly3 -o build && bin/p4lb test build/qall-poly3.json examples/schemes/qall-poly3.stf
