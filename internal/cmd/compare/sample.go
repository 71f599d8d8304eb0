//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/kallscope/kallscope/internal/render"
)

// sample is one run of one tool. Durations are seconds, or with -icount 10⁹
// instructions.
type sample struct {
	Tool    string `json:"tool"`
	Pattern string `json:"pattern"`
	// Round counts from 1; those below are not counted.
	Round int `json:"round"`
	// Attach is the time from the start of the process until all is attached;
	// of the floor, that of the call.
	Attach float64 `json:"attach_seconds"`
	// Stop is the time from SIGINT to the end of the process, of the floor
	// that of detaching.
	Stop float64 `json:"stop_seconds"`
	// RSS is the peak of resident memory until attached.
	RSS int `json:"rss_kib,omitempty"`
	// Functions are those of the link.
	Functions int `json:"functions"`
	// Enabled are the lines of enabled_functions, in the first round.
	Enabled int `json:"enabled_functions,omitempty"`
}

func (s sample) String() string {
	return fmt.Sprintf("%s round %d: %-13s attached %7.3f stopped %7.3f, %s functions",
		s.Pattern, s.Round, s.Tool, s.Attach, s.Stop, render.Number(s.Functions))
}

// readJSON reads lines of JSON and calls f for each.
func readJSON(r io.Reader, f func(sample)) ([]sample, error) {
	var samples []sample
	for d := json.NewDecoder(r); ; {
		var s sample
		err := d.Decode(&s)
		if errors.Is(err, io.EOF) {
			return samples, nil
		}
		if err != nil {
			return samples, fmt.Errorf("read samples: %w", err)
		}
		f(s)
		samples = append(samples, s)
	}
}

func writeJSON(file string, samples []sample) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	e := json.NewEncoder(f)
	for _, s := range samples {
		err = errors.Join(err, e.Encode(s))
	}
	return errors.Join(err, f.Close())
}
