# Each target is one or a few plain commands; docs/contributing.md says more.

KERNEL    ?= 6.12
KERNELS   ?= 7.3 6.12 6.1 5.10
PKG       ?= ./...
FUZZTIME  ?= 20s
BENCHTIME ?= 1s

GO   ?= go
RUN   = $(GO) run ./internal/cmd
TOOL  = $(GO) tool -modfile=internal/tools/go.mod

.PHONY: all build demo test setup lint generate docs generated unit cross fuzz vmtest bench clean
all: build

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/ ./cmd/kallscope ./internal/cmd/vmrun ./internal/cmd/workload

demo:
	$(RUN)/setup guest
	$(RUN)/kernels fetch 6.12
	@$(MAKE) --no-print-directory build
	bin/vmrun -timeout 15m -copy bin/workload:/workload -- $(CURDIR)/bin/kallscope count '*' --top 20 -- /workload -d 5s

test:
	.ci/run

setup:
	$(RUN)/setup guest bpf race
	$(RUN)/kernels fetch $(KERNELS)

lint:
	$(TOOL) golangci-lint run

generate:
	$(GO) generate ./...

docs:
	$(RUN)/mkdocs

generated: generate docs
	git diff --exit-code

unit:
	$(RUN)/gotest run -race $(PKG)

cross:
	GOOS=darwin $(GO) build ./...
	GOARCH=arm64 $(GO) build ./...

fuzz:
	$(RUN)/gotest fuzz -each $(FUZZTIME) $(PKG)

vmtest:
	$(RUN)/gotest guest -kernel $(KERNEL) $(PKG)

bench:
	$(GO) test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) $(PKG)

clean:
	rm -rf bin
