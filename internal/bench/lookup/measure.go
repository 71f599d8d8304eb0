package lookup

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Cell is what was measured of one question.
type Cell struct {
	Wanted, Symbols int
	// Read is the time to read the files and throw them away, scaled to the
	// number of symbols; Parse that of a pass over the text that takes every
	// line apart and does nothing with it. Both are medians.
	Read, Parse time.Duration
	Results     []Result
}

// Result is what one method took. Times are medians of the rounds.
type Result struct {
	Method Method
	// Skipped says why the method could not be measured; all else is zero then.
	Skipped error
	Time    time.Duration
	// Sampled is how many functions were looked up to tell the time of all;
	// zero means all.
	Sampled int
	// Bytes and Allocs are what one run allocates, garbage or not, of the
	// sample where there is one.
	Bytes, Allocs uint64
	// Found is how many functions have an address, of the sample too.
	Found int
}

// candidate is a method during a measurement.
type candidate struct {
	result Result
	in     *Input
	run    *Run
	times  []time.Duration
}

// Measure lets all methods answer a question of [Source.Input], by turns, so
// that what else the machine does hits all of them. It fails if two answers
// differ.
func Measure(in *Input, methods []Method, rounds int) (_ Cell, err error) {
	cell := Cell{Wanted: in.Wanted.Len()}
	var candidates []*candidate
	defer func() {
		for _, c := range candidates {
			if c.run != nil {
				err = errors.Join(err, c.run.close())
			}
		}
	}()
	for _, m := range methods {
		c, err := prepare(in, m)
		if err != nil {
			return cell, err
		}
		candidates = append(candidates, c)
	}
	var reads, parses []time.Duration
	for range rounds {
		if err := cell.floors(in, &reads, &parses); err != nil {
			return cell, err
		}
		for _, c := range candidates {
			if err := c.round(); err != nil {
				return cell, fmt.Errorf("%s: %w", c.result.Method.Name, err)
			}
		}
	}
	cell.Read, cell.Parse = median(reads), median(parses)
	for _, c := range candidates {
		cell.Results = append(cell.Results, c.conclude(cell.Wanted))
	}
	return cell, nil
}

// floors takes both once.
func (c *Cell) floors(in *Input, reads, parses *[]time.Duration) error {
	read, err := in.read()
	if err != nil {
		return err
	}
	begin := time.Now()
	if c.Symbols, err = parseOnly(in.Text); err != nil {
		return err
	}
	*reads, *parses = append(*reads, read), append(*parses, time.Since(begin))
	return nil
}

func prepare(in *Input, m Method) (*candidate, error) {
	c := &candidate{result: Result{Method: m}, in: in}
	if m.Sample > 0 && in.Wanted.Len() > m.Sample {
		c.in = &Input{Wanted: in.Wanted.spread(m.Sample), Text: in.Text, Live: in.Live}
		c.result.Sampled = m.Sample
	}
	run, err := m.Prepare(c.in)
	switch {
	case errors.Is(err, ErrNotLive):
		c.result.Skipped = err
	case err != nil:
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	c.run = run
	return c, nil
}

// round measures one run. The first is compared with what the map says.
func (c *candidate) round() error {
	if c.run == nil {
		return nil
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begin := time.Now()
	answer, err := c.run.Resolve()
	c.times = append(c.times, time.Since(begin))
	if err != nil {
		return err
	}
	runtime.ReadMemStats(&after)
	c.result.Bytes, c.result.Allocs = after.TotalAlloc-before.TotalAlloc, after.Mallocs-before.Mallocs
	c.result.Found = answer.Found()
	if len(c.times) > 1 {
		return nil
	}
	want, err := resolveHashed(c.in)
	if err == nil && !answer.Equal(want, c.result.Method.FirstOnly) {
		err = fmt.Errorf("%d of %d found, which differs from what %s finds, %d", answer.Found(), answer.Len(), hashed.Name, want.Found())
	}
	return err
}

// conclude returns the result for all wanted functions.
func (c *candidate) conclude(wanted int) Result {
	if len(c.times) > 0 {
		c.result.Time = median(c.times)
	}
	if n := c.result.Sampled; n > 0 {
		c.result.Time = time.Duration(float64(c.result.Time) * float64(wanted) / float64(n))
	}
	return c.result
}

// median returns the middle of d, which it sorts.
func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
