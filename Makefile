# Each target is one or a few plain commands; docs/contributing.md says more.

KERNEL     ?= 6.12
PKG        ?= ./...
FUZZTIME   ?= 20s
FUZZBUDGET ?= 1h
BENCHTIME  ?= 1s

GO  ?= go
RUN  = $(GO) run ./internal/cmd

MAKEFLAGS += --no-print-directory
.PHONY: build demo test setup lint generate docs generated unit cross fuzz vmtest bench clean

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/kallscope ./internal/cmd/vmrun ./internal/cmd/workload

demo:
	$(RUN)/setup guest
	$(RUN)/kernels fetch 6.12
	@$(MAKE) build
	bin/vmrun -timeout 15m -copy bin/workload:/workload -- $(CURDIR)/bin/kallscope count '*' --top 20 -- /workload -d 5s

test:
	.ci/run

setup:
	$(RUN)/setup guest bpf test
	$(RUN)/kernels fetch

lint:
	$(GO) tool -modfile=internal/tools/go.mod golangci-lint run --allow-parallel-runners

generate:
	$(GO) generate ./...

docs:
	$(RUN)/mkdocs

# Generating anew changes nothing.
generated:
	@state() { git status --porcelain; git diff; }; old=$$(state); \
	$(MAKE) generate docs && [ "$$old" = "$$(state)" ] || { state; exit 1; }

unit:
	$(RUN)/gotest run -race $(PKG)

cross:
	GOOS=darwin $(GO) build ./...
	GOARCH=arm64 $(GO) build ./...

fuzz:
	$(RUN)/gotest fuzz -each $(FUZZTIME) -budget $(FUZZBUDGET) $(PKG)

vmtest:
	$(RUN)/gotest guest -kernel $(KERNEL) $(PKG)

bench:
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $(PKG)

clean:
	rm -rf bin
