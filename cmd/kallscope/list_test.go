package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// of73 are parts of Debian's 7.3 kernel; see testdata/snapshots/README.md.
const of73 = "../../testdata/snapshots/7.3.ksnap"

// object runs the tool for one JSON line.
func object(t *testing.T, args ...string) map[string]any {
	t.Helper()
	out, speech, status := tool(append(args, "--json", "--kernel", of73)...)
	qt.Assert(t, qt.Equals(status, exitDone), qt.Commentf(speech))
	qt.Assert(t, qt.Equals(strings.Count(out, "\n"), 1), qt.Commentf(out))
	fields := make(map[string]any)
	qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(out), &fields)))
	return fields
}

// TestBaseID: a function that BTF has under another name is shown with that id,
// marked, by every command.
func TestBaseID(t *testing.T) {
	base := []any{map[string]any{"object": "vmlinux", "id": 81078.0}}
	for _, command := range []string{"list", "resolve", "why"} {
		fields := object(t, command, "finish_task_switch.isra.0")
		qt.Check(t, qt.Equals(fields["variant_of"], any("finish_task_switch")))
		qt.Check(t, qt.DeepEquals(fields["btf_base_ids"], any(base)))
		qt.Check(t, qt.Equals(fields["arguments_may_differ"], any(true)))
		qt.Check(t, qt.IsNil(fields["btf_ids"]))

		fields = object(t, command, "vfs_read")
		for _, absent := range []string{"variant_of", "btf_base_ids", "arguments_may_differ"} {
			_, there := fields[absent]
			qt.Check(t, qt.IsFalse(there), qt.Commentf("%s %s", command, absent))
		}
		qt.Check(t, qt.DeepEquals(fields["btf_ids"], any([]any{map[string]any{"object": "vmlinux", "id": 118026.0}})))
	}
	out, _, _ := tool("list", "finish_task_switch.isra.0", "--kernel", of73)
	qt.Check(t, qt.StringContains(out, "  ~#81078   kprobe.multi     finish_task_switch.isra.0\n"))
	out, _, _ = tool("resolve", "finish_task_switch.isra.0", "--kernel", of73)
	qt.Check(t, qt.StringContains(out, "\tfinish_task_switch.isra.0\t~#81078\t-\n"))
	out, _, _ = tool("why", "finish_task_switch.isra.0", "--kernel", of73)
	qt.Check(t, qt.StringContains(out, "BTF        #81078 of finish_task_switch, "))
}
