package attach

import (
	"time"

	"github.com/kallscope/kallscope"
)

// A Cost is what attaching takes and what detaching will take, roughly: the
// times were measured on emulated machines, and real ones are a few times
// faster.
type Cost struct {
	Attach, Detach time.Duration
}

// perTarget is the cost of one target among many. Where each has a link of its
// own, attaching patches the kernel's text each time, and detaching waits for
// an RCU grace period that links cannot share.
var perTarget = map[kallscope.Mechanism]Cost{
	kallscope.KprobeMulti:    {100 * time.Microsecond, 75 * time.Microsecond},
	kallscope.KretprobeMulti: {180 * time.Microsecond, 75 * time.Microsecond},
	kallscope.KprobeSession:  {270 * time.Microsecond, 75 * time.Microsecond},
	kallscope.Fentry:         {10 * time.Millisecond, 150 * time.Millisecond},
	kallscope.Fexit:          {10 * time.Millisecond, 150 * time.Millisecond},
	kallscope.Fsession:       {10 * time.Millisecond, 150 * time.Millisecond},
	kallscope.FentryMulti:    {500 * time.Microsecond, 250 * time.Microsecond},
	kallscope.FexitMulti:     {500 * time.Microsecond, 250 * time.Microsecond},
	kallscope.FsessionMulti:  {500 * time.Microsecond, 250 * time.Microsecond},
	kallscope.Kprobe:         {25 * time.Millisecond, 60 * time.Millisecond},
	kallscope.Kretprobe:      {25 * time.Millisecond, 60 * time.Millisecond},
}

// Estimate returns the cost of a plan, to be said before it is attached.
func Estimate(plan *kallscope.Plan) Cost {
	var c Cost
	for i := range plan.Targets {
		one := perTarget[plan.Targets[i].Mechanism]
		c.Attach += one.Attach
		c.Detach += one.Detach
	}
	return c
}
