package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
)

// byPackage is the slow twin of appendTo.
func byPackage(tb testing.TB, j *resolveJSON) string {
	tb.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	qt.Assert(tb, qt.IsNil(enc.Encode(j)))
	return strings.TrimSuffix(b.String(), "\n")
}

func FuzzResolveJSON(f *testing.F) {
	f.Add(uint64(0xffffffff81000100), "vmlinux", "vfs_read", uint64(0), uint32(118026), uint8(1))
	f.Add(uint64(0), "f\"use", "caf\xc3\xa9\\\x80<&>\x01\u2028", uint64(1<<63), uint32(0), uint8(255))
	f.Add(uint64(1), "", "finish.isra.0", uint64(4), uint32(1), uint8(0x3e))
	f.Fuzz(func(t *testing.T, addr uint64, module, name string, offset uint64, id uint32, has uint8) {
		n := func(bit int) int { return int(has >> bit & 1) }
		ids := []kallscope.BTFID{{Object: module, ID: id}, {Object: name, ID: ^id}}
		j := resolveJSON{
			resolveSchema, kallscope.Hex(addr), module, name, offset,
			newBTFJSON(kallscope.Func{Name: name}, knownIDs{ids[:n(0)+n(1)], ids[:n(2)]}, []string{name, module}[:n(3)+n(4)]),
			[]string{name, module}[:n(5)+n(6)],
		}
		qt.Assert(t, qt.Equals(string(j.appendTo(nil)), byPackage(t, &j)))
	})
}

// TestResolveAll: the whole table is that of '*', one JSON object a line.
func TestResolveAll(t *testing.T) {
	all, _, status := tool("resolve", "--all", "--json", "--proto", "--kernel", of73)
	qt.Assert(t, qt.Equals(status, exitDone))
	star, _, _ := tool("resolve", "*", "--json", "--proto", "--kernel", of73)
	qt.Assert(t, qt.IsTrue(all == star))
	k, err := kallscope.Open(of73)
	qt.Assert(t, qt.IsNil(err))
	p, err := k.Plan(kallscope.Query{Patterns: []string{"*"}}, kallscope.PlanOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(strings.Count(all, "\n"), p.Matched()))
	btfOnly := 0
	for f := range p.Funcs() {
		if f.BTFID != 0 {
			btfOnly--
		}
	}
	qt.Assert(t, qt.IsTrue(btfOnly < 0))
	for line := range strings.Lines(all) {
		var j resolveJSON
		qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(line), &j)))
		qt.Assert(t, qt.Equals(byPackage(t, &j)+"\n", line))
		if j.Addr == 0 && len(j.IDs) > 0 {
			btfOnly++
		}
	}
	qt.Check(t, qt.Equals(btfOnly, 0))
}
