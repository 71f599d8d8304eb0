package vm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/kallscope/kallscope/internal/vm/wire"
)

// powerOff is how long a guest may take to end once it has said that it will.
const powerOff = 5 * time.Second

// run is a started Cmd. Three goroutines work for it: one waits for QEMU, one
// (serve) reads frames, one (pump) sends standard input.
type run struct {
	dir    string // removed at the end
	ctx    context.Context
	cancel context.CancelFunc
	log    *kernelLog
	fetch  fetcher
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer

	listener net.Listener
	gone     chan error    // QEMU has ended
	served   chan error    // no more frames will come
	started  chan struct{} // the program runs, or never will
	once     sync.Once     // closes started
	acked    atomic.Int64  // bytes of standard input consumed
	ackNote  chan struct{} // acked has grown
	qemuErr  bytes.Buffer  // valid once gone
	status   *wire.Status  // valid once served

	mu      sync.Mutex // guards the fields below
	out     *wire.Writer
	pending []uint32 // signals sent before the guest was there
}

func newRun(c *Cmd, dir string, l net.Listener) *run {
	r := &run{
		dir:      dir,
		log:      &kernelLog{also: c.Console},
		fetch:    fetcher{to: c.Fetch, may: c.FetchOptional},
		stdin:    c.Stdin,
		stdout:   orDiscard(c.Stdout),
		stderr:   orDiscard(c.Stderr),
		listener: l,
		gone:     make(chan error, 1),
		served:   make(chan error, 1),
		started:  make(chan struct{}),
		ackNote:  make(chan struct{}, 1),
	}
	r.ctx, r.cancel = context.WithTimeoutCause(c.ctx, c.Timeout,
		fmt.Errorf("%w: no end after %v (raise Timeout if the guest is only slow)", ErrTimeout, c.Timeout))
	return r
}

func orDiscard(w io.Writer) io.Writer {
	if w == nil {
		return io.Discard
	}
	return w
}

// serve reads frames from the guest until the exit status or the connection's
// end, then closes the connection, which lets the guest power off.
func (r *run) serve() {
	conn, err := r.listener.Accept()
	if err != nil {
		r.served <- err
		return
	}
	defer conn.Close()
	r.connect(wire.NewWriter(conn))
	err = r.receive(wire.NewReader(bufio.NewReaderSize(conn, 2*wire.MaxPayload)))
	r.served <- errors.Join(err, r.fetch.close())
}

// connect makes the connection known and sends the signals that came early.
// Init keeps them until the program runs.
func (r *run) connect(w *wire.Writer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out = w
	for _, sig := range r.pending {
		_ = w.SendUint32(wire.Signal, sig)
	}
}

func (r *run) receive(in *wire.Reader) error {
	for {
		f, err := in.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read from guest: %w", err)
		}
		if err := r.handle(f); err != nil || r.status != nil {
			return err
		}
	}
}

func (r *run) handle(f wire.Frame) error {
	switch f.Kind {
	case wire.Stdout:
		_, err := r.stdout.Write(f.Payload)
		return err
	case wire.Stderr:
		_, err := r.stderr.Write(f.Payload)
		return err
	case wire.Hello:
		// QEMU has read all files and is connected: nothing is left behind even
		// if this process is killed.
		os.RemoveAll(r.dir)
	case wire.Log:
		r.log.line(f.Payload)
	case wire.Started:
		r.once.Do(func() { close(r.started) })
		if r.stdin != nil {
			go r.pump()
		}
	case wire.StdinAck:
		r.acked.Add(int64(f.Uint32()))
		select {
		case r.ackNote <- struct{}{}:
		default:
		}
	case wire.FileHead:
		return r.fetch.head(f.Payload)
	case wire.FileData:
		return r.fetch.data(f.Payload)
	case wire.Exit:
		r.status = new(wire.Status)
		return json.Unmarshal(f.Payload, r.status)
	}
	return nil
}

// pump sends standard input, never more than a window ahead of the program.
func (r *run) pump() {
	buf := make([]byte, wire.MaxPayload)
	for sent := int64(0); ; {
		n, err := r.stdin.Read(buf)
		if n > 0 && r.out.Send(wire.StdinData, buf[:n]) != nil {
			return
		}
		if err != nil {
			_ = r.out.Send(wire.StdinEOF, nil)
			return
		}
		sent += int64(n)
		if !r.waitAcked(sent + wire.MaxPayload - wire.StdinWindow) {
			return
		}
	}
}

// waitAcked returns true once n bytes of standard input were consumed, false
// at the end of the guest.
func (r *run) waitAcked(n int64) bool {
	for r.acked.Load() < n {
		select {
		case <-r.ackNote:
		case <-r.ctx.Done():
			return false
		}
	}
	return true
}

func (r *run) signal(sig os.Signal) error {
	number, ok := sig.(syscall.Signal)
	if !ok {
		return fmt.Errorf("signal guest: %v has no number", sig)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.out == nil {
		r.pending = append(r.pending, uint32(number))
		return nil
	}
	if err := r.out.SendUint32(wire.Signal, uint32(number)); err != nil {
		return fmt.Errorf("signal guest: %w", os.ErrProcessDone)
	}
	return nil
}

// wait collects both ends, the frames' and QEMU's.
func (r *run) wait() error {
	defer os.RemoveAll(r.dir)
	defer r.cancel()
	defer r.once.Do(func() { close(r.started) })
	served, early := r.waitServed()
	cause := context.Cause(r.ctx)
	if !early {
		r.waitGone()
	}
	if r.status != nil {
		return r.result(served)
	}
	return r.crash(cause, served)
}

// waitServed returns when no more frames come. QEMU may end without ever
// having connected; early says that it has ended.
func (r *run) waitServed() (err error, early bool) {
	select {
	case err = <-r.served:
		return err, false
	case <-r.gone:
		// What is in the socket is still to be read; Accept ends by this.
		r.listener.Close()
		return <-r.served, true
	}
}

// waitGone gives a guest that has ended well the time to power off; one that
// has not is killed.
func (r *run) waitGone() {
	r.listener.Close()
	limit := powerOff
	if r.status == nil {
		limit = time.Second // a panicking kernel still writes its log
	}
	select {
	case <-r.gone:
	case <-time.After(limit):
		r.cancel()
		<-r.gone
	}
}

// result turns the exit status into an error.
func (r *run) result(served error) error {
	s := r.status
	switch {
	case s.Err != "":
		return fmt.Errorf("guest: %s", s.Err)
	case s.Code != 0:
		return &ExitError{Code: s.Code, Signal: s.Signal}
	}
	return served
}

// crash makes an error from why the context ended, if it has, how the
// connection ended, and the log, in this order.
func (r *run) crash(cause, served error) error {
	log := r.log.String()
	e := &CrashError{Log: tail(log, tailLines), QEMU: tail(r.qemuErr.String(), tailLines)}
	switch {
	case cause != nil:
		e.Cause = cause
	case served != nil && !errors.Is(served, net.ErrClosed):
		e.Cause = served
	default:
		e.Cause = crashCause(log)
	}
	return e
}
