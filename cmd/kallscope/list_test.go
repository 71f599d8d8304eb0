package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// of73 are parts of Debian's 7.3 kernel; see testdata/snapshots/README.md.
const of73 = "../../testdata/snapshots/7.3.ksnap"

// of61 has names in BTF several times.
const of61 = "../../testdata/snapshots/6.1.ksnap"

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

const readProto = "ssize_t vfs_read(struct file *file, char *buf, size_t count, loff_t *pos)"

// TestProto: prototypes on request, marked where they are another function's,
// and all of them where the ids of a name differ.
func TestProto(t *testing.T) {
	for _, command := range []string{"list", "resolve"} {
		qt.Check(t, qt.Equals(object(t, command, "vfs_read", "--proto")["prototype"], any(readProto)))
		qt.Check(t, qt.IsNil(object(t, command, "vfs_read")["prototype"]))
		qt.Check(t, qt.Equals(object(t, command, "finish_task_switch.isra.0", "--proto")["prototype"], any("struct rq *finish_task_switch(struct task_struct *prev)")))
	}
	qt.Check(t, qt.Equals(object(t, "why", "vfs_read")["prototype"], any(readProto)))
	out, _, _ := tool("list", "vfs_read", "finish_task_switch.isra.0", "syscall:getppid", "--proto", "--kernel", of73)
	qt.Check(t, qt.Matches(out, `ADDRESS .*  FUNCTION                   PROTOTYPE
.*  __x64_sys_getppid          -
.*  finish_task_switch.isra.0  ~struct rq \*finish_task_switch\(struct task_struct \*prev\)
.*  vfs_read                   ssize_t vfs_read\(.*
`))

	for _, command := range []string{"list", "resolve", "why"} {
		out, _, status := tool(command, "#43616", "--proto", "--json", "--kernel", of61)
		if command == "why" {
			out, _, status = tool(command, "#43616", "--json", "--kernel", of61)
		}
		qt.Assert(t, qt.Equals(status, exitDone))
		qt.Check(t, qt.Equals(strings.Count(out, "\n"), 12), qt.Commentf("all functions of an ambiguous id"))
		var line struct{ Prototypes []string }
		qt.Assert(t, qt.IsNil(json.NewDecoder(strings.NewReader(out)).Decode(&line)))
		qt.Check(t, qt.DeepEquals(line.Prototypes, []string{
			"ssize_t type_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)",
			"ssize_t type_show(struct device *dev, struct device_attribute *attr, char *buf)",
			"ssize_t type_show(struct hyp_sysfs_attr *attr, char *buffer)",
		}))
	}
	out, _, _ = tool("resolve", "#43616", "--proto", "--kernel", of61)
	qt.Check(t, qt.StringContains(out, "\ttype_show\t#6890,#43616,#92089\t-\tssize_t type_show(struct kobject *"))
	out, _, _ = tool("why", "#43616", "--kernel", of61)
	qt.Check(t, qt.StringContains(out, "  prototype  ssize_t type_show(struct kobject *kobj, struct kobj_attribute *attr, char *buf)\n             ssize_t type_show(struct device "))
}

// TestMechanismMarks: a mark for each mechanism that is possible, with the rows
// of one of them.
func TestMechanismMarks(t *testing.T) {
	out, _, status := tool("list", "vfs_read", "vmlinux:type_show", "--duplicates", "first", "--mechanisms", "--kernel", of73)
	qt.Assert(t, qt.Equals(status, exitDone))
	qt.Check(t, qt.Matches(out, `ADDRESS .*  MECHANISM        MECHANISMS      FUNCTION
.*  kprobe.multi     KRS:---:---:kr  type_show
.*  kprobe.multi     KRS:fxs:FXS:kr  vfs_read
`))
	fields := object(t, "list", "finish_task_switch.isra.0", "--mechanisms")
	qt.Check(t, qt.DeepEquals(fields["mechanisms"], any([]any{"kprobe.multi", "kretprobe.multi", "kprobe.session", "kprobe", "kretprobe"})))
	fields = object(t, "list", "ksys_msgctl", "--mechanisms", "--skipped")
	qt.Check(t, qt.DeepEquals(fields["mechanisms"], any([]any{})), qt.Commentf("asked for, and none"))
	_, there := object(t, "list", "vfs_read")["mechanisms"]
	qt.Check(t, qt.IsFalse(there))
}

func TestVariants(t *testing.T) {
	for _, command := range []string{"list", "resolve", "why"} {
		fields := object(t, command, "finish_task_switch", "--variants")
		qt.Check(t, qt.Equals(fields["name"], any("finish_task_switch.isra.0")))
		qt.Check(t, qt.Equals(fields["variant_of"], any("finish_task_switch")))
		qt.Check(t, qt.Equals(object(t, command, "#81078", "--variants")["name"], any("finish_task_switch.isra.0")))
	}
	_, speech, status := tool("list", "finish_task_switch", "--kernel", of73)
	qt.Check(t, qt.Equals(status, exitNoMatch))
	qt.Check(t, qt.StringContains(speech, "use the full name, or --variants"))
}
