package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope/internal/testutil"
)

// TestGuestFeatures: each test kernel has just the mechanisms that it is known
// to have, and says of each other one what is missing.
func TestGuestFeatures(t *testing.T) {
	testutil.Guest(t)
	want := []string{"fentry", "fexit", "kprobe", "kretprobe"}
	switch testutil.Release(t) {
	case "6.12":
		want = append(want, "kprobe.multi", "kretprobe.multi", "kprobe.session")
	case "7.3":
		want = append(want, "kprobe.multi", "kretprobe.multi", "kprobe.session", "fsession", "fentry.multi", "fexit.multi", "fsession.multi")
	}
	slices.Sort(want)
	out, speech, status := tool("features", "--json")
	qt.Assert(t, qt.Equals(status, exitDone), qt.Commentf("%s", speech))
	var got []string
	for line := range strings.Lines(out) {
		var f featureJSON
		qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(line), &f)))
		qt.Assert(t, qt.Equals(f.Schema, featuresSchema))
		qt.Assert(t, qt.Equals(f.Usable, f.Problem == ""))
		switch {
		case f.Type == "mechanism" && f.Usable:
			got = append(got, f.Name)
		case f.Type == "mechanism":
			qt.Check(t, qt.Matches(f.Problem, `\S+: not supported by this kernel: it (is older than this mechanism \(Linux \d+\.\d+\)|was built without CONFIG_.*)`))
		case f.Type == "source":
			qt.Check(t, qt.IsTrue(f.Usable && f.Entries > 0), qt.Commentf("%s", line))
		}
	}
	slices.Sort(got)
	qt.Assert(t, qt.DeepEquals(got, want))
	out, _, _ = tool("features")
	fmt.Print(out)
	qt.Assert(t, qt.Equals(strings.Count(out, "\n"), 22))
}
