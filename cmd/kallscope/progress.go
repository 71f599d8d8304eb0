package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/kallscope/kallscope/attach"
	"github.com/kallscope/kallscope/internal/render"
)

// progress is one line on a terminal that says what is going on while the
// kernel takes its time; anywhere else it is silent.
type progress struct {
	w  io.Writer
	on bool

	mu    sync.Mutex
	text  string
	begin time.Time
	stop  chan struct{}
}

func newProgress(w io.Writer) *progress {
	return &progress{w: w, on: isTerminal(w)}
}

var phaseVerbs = map[attach.Phase]string{
	attach.PhaseLoad:   "loading the program for",
	attach.PhaseAttach: "attaching to",
	attach.PhaseDetach: "detaching from",
}

// show says how far attaching is.
func (p *progress) show(now attach.Progress) {
	text := phaseVerbs[now.Phase] + " " + render.Plural(now.Total, "function")
	if now.Done > 0 && now.Done < now.Total {
		text += fmt.Sprintf(", %s done", render.Number(now.Done))
	}
	p.say(text)
}

// say replaces the line. The seconds in it go on by themselves: one system call
// attaches everything and says nothing until it is done.
func (p *progress) say(text string) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = text
	if p.stop == nil {
		p.begin, p.stop = time.Now(), make(chan struct{})
		go p.tick(p.stop)
	}
	p.draw()
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func (p *progress) tick(stop chan struct{}) {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			p.mu.Lock()
			if p.stop == stop {
				p.draw()
			}
			p.mu.Unlock()
		}
	}
}

func (p *progress) draw() {
	fmt.Fprintf(p.w, "\r\x1b[K%s … %.0f s", p.text, time.Since(p.begin).Seconds())
}

// clear takes the line away.
func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stop == nil {
		return
	}
	close(p.stop)
	p.stop = nil
	fmt.Fprint(p.w, "\r\x1b[K")
}
