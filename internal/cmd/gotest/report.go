package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
)

// event is one line of go test -json, see go doc test2json.
type event struct {
	Action     string
	Package    string
	ImportPath string // of build events
	Test       string
	Output     string
}

// tally counts tests, subtests included.
type tally struct{ passed, failed, skipped int }

func (t tally) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}

// report turns events into text. Safe for concurrent use.
type report struct {
	w io.Writer

	mu sync.Mutex // guards the fields below
	tally
	running map[string][]string // output by package and test that have not ended
	why     map[string][]string // reason → skipped tests
	broken  bool                // something failed that is no test
}

func newReport(w io.Writer) *report {
	return &report{w: w, running: map[string][]string{}, why: map[string][]string{}}
}

// read reports the events of one go test. What is no event is passed on.
func (r *report) read(in io.Reader) error {
	return eachLine(in, func(line []byte) {
		var e event
		if json.Unmarshal(line, &e) != nil {
			fmt.Fprintf(r.w, "%s\n", line)
			return
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.add(e)
	})
}

func (r *report) add(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		r.running[key] = append(r.running[key], e.Output)
		return
	case "build-output":
		fmt.Fprint(r.w, e.Output)
		return
	case "build-fail":
		r.broken = true
		return
	case "pass", "fail", "skip":
	default:
		return
	}
	output := r.running[key]
	delete(r.running, key)
	if e.Test == "" {
		r.endPackage(e, output)
		return
	}
	switch e.Action {
	case "pass":
		r.passed++
	case "fail":
		r.failed++
		r.print(output)
	case "skip":
		r.skipped++
		reason := skipReason(output)
		r.why[reason] = append(r.why[reason], shortPath(e.Package)+"."+e.Test)
	}
}

// endPackage prints the last line of a package that passed, and all of one that
// did not, with the tests in it that never ended.
func (r *report) endPackage(e event, output []string) {
	if e.Action == "fail" {
		r.broken = true
		for _, key := range slices.Sorted(maps.Keys(r.running)) {
			if strings.HasPrefix(key, e.Package+" ") {
				r.failed++
				r.print(r.running[key])
				delete(r.running, key)
			}
		}
		r.print(output)
		return
	}
	for _, line := range output {
		if strings.HasPrefix(line, "ok ") && !strings.Contains(line, "[no tests to run]") {
			fmt.Fprint(r.w, line)
		}
	}
}

func (r *report) print(output []string) {
	for _, line := range output {
		if !strings.HasPrefix(line, "=== ") {
			fmt.Fprint(r.w, line)
		}
	}
}

// skipReason returns what a test said when it skipped itself.
func skipReason(output []string) string {
	reason := "no reason given"
	for _, line := range output {
		line = strings.TrimSpace(line)
		// "live_test.go:19: no BTF here"
		if _, text, ok := strings.Cut(line, ".go:"); ok {
			if _, text, ok = strings.Cut(text, ": "); ok {
				reason = text
			}
		}
	}
	return reason
}

// close prints the skipped tests by reason, and the closing line.
func (r *report) close(name string) {
	for _, reason := range slices.Sorted(maps.Keys(r.why)) {
		fmt.Fprintf(r.w, "skip\t%s: %s\n", reason, strings.Join(r.why[reason], " "))
	}
	fmt.Fprintf(r.w, "%s: %v\n", name, r.tally)
}

// ok says whether everything passed.
func (r *report) ok() bool { return r.failed == 0 && !r.broken }

// shortPath returns the last element of a package path.
func shortPath(pkg string) string { return pkg[strings.LastIndexByte(pkg, '/')+1:] }
