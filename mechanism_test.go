package kallscope_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/kallscope/kallscope"
)

// TestPlanMechanisms: the mechanisms of a candidate are those whose own plan has
// it as a target.
func TestPlanMechanisms(t *testing.T) {
	kernels := map[string]*kallscope.Kernel{"small": live(t, small)}
	for _, name := range []string{"6.1", "7.3"} {
		k, err := kallscope.Open("testdata/snapshots/" + name + ".ksnap")
		qt.Assert(t, qt.IsNil(err))
		kernels[name] = k
	}
	for name, k := range kernels {
		for _, o := range []kallscope.PlanOptions{{Mechanisms: true}, {Mechanisms: true, Cautious: true, Mechanism: kallscope.Fexit, Unsafe: true}} {
			got, err := k.Plan(query("*"), o)
			qt.Assert(t, qt.IsNil(err))
			want := make(map[kallscope.Func]kallscope.MechanismSet)
			for _, m := range kallscope.Mechanisms() {
				p, err := k.Plan(query("*"), kallscope.PlanOptions{Mechanism: m, Cautious: o.Cautious, Unsafe: o.Unsafe})
				qt.Assert(t, qt.IsNil(err))
				for _, target := range p.Targets {
					want[target.Func] = want[target.Func].With(m)
				}
			}
			some := make(map[kallscope.MechanismSet]bool)
			for _, target := range got.Targets {
				some[target.Mechanisms] = true
				qt.Check(t, qt.Equals(target.Mechanisms, want[target.Func]), qt.Commentf("%s: %s", name, target.Func))
			}
			for skip := range got.Skipped.All() {
				some[skip.Mechanisms] = true
				qt.Check(t, qt.Equals(skip.Mechanisms, want[skip.Func]), qt.Commentf("%s: %s", name, skip.Func))
			}
			qt.Check(t, qt.IsTrue(len(some) >= 3), qt.Commentf("%s: %d different sets", name, len(some)))

			var b bytes.Buffer
			qt.Assert(t, qt.IsNil(got.Encode(&b)))
			again, err := kallscope.DecodePlan(&b)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.DeepEquals(again.Targets, got.Targets))
		}
	}
}

func TestMechanismSet(t *testing.T) {
	var s kallscope.MechanismSet
	s = s.With(kallscope.Kretprobe).With(kallscope.Fentry)
	qt.Check(t, qt.DeepEquals(s.List(), []kallscope.Mechanism{kallscope.Fentry, kallscope.Kretprobe}))
	text, err := json.Marshal(s)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(text), `["fentry","kretprobe"]`))
	var again kallscope.MechanismSet
	qt.Assert(t, qt.IsNil(json.Unmarshal(text, &again)))
	qt.Check(t, qt.Equals(again, s))
	qt.Check(t, qt.ErrorMatches(json.Unmarshal([]byte(`["auto"]`), &again), "auto is no mechanism of a set"))
	qt.Check(t, qt.ErrorMatches(json.Unmarshal([]byte(`["uprobe"]`), &again), `mechanism "uprobe": not found.*`))
}

// TestPlanMechanismsOfDuplicates: who is skipped as one of several keeps what is
// known of it.
func TestPlanMechanismsOfDuplicates(t *testing.T) {
	p, err := live(t, small).Plan(query("vmlinux:type_show"), kallscope.PlanOptions{Mechanisms: true, Duplicates: kallscope.DuplicatesFirst})
	qt.Assert(t, qt.IsNil(err))
	n := 0
	for skip := range p.Skipped.All() {
		if skip.Reason == kallscope.ReasonDuplicate {
			n++
			qt.Check(t, qt.IsTrue(skip.Mechanisms.Has(kallscope.KprobeMulti) && !skip.Mechanisms.Has(kallscope.Fentry)))
		}
	}
	qt.Check(t, qt.Equals(n, 1))
}
