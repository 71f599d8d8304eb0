package guest

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/kallscope/kallscope/internal/vm/wire"
)

// closeTimeout limits the wait for the host to have read everything.
const closeTimeout = 10 * time.Second

// line is the connection to the host.
type line struct {
	*wire.Writer
	port   *os.File
	in     *input
	closed chan struct{} // the host has closed its end

	// group is the command's process group, valid once started is closed;
	// zero if the command could not be started.
	started chan struct{}
	group   int
}

// newLine greets the host and begins to listen. The greeting has to come
// first: the port reads as closed until the host's side is known to be open,
// and a write waits for that.
func newLine(port *os.File) (*line, error) {
	l := &line{
		Writer:  wire.NewWriter(port),
		port:    port,
		in:      newInput(),
		closed:  make(chan struct{}),
		started: make(chan struct{}),
	}
	if err := l.Send(wire.Hello, nil); err != nil {
		return nil, fmt.Errorf("greet host: %w", err)
	}
	go l.receive()
	return l, nil
}

func (l *line) setGroup(pid int) {
	l.group = pid
	close(l.started)
}

func (l *line) logf(format string, args ...any) {
	_ = l.Send(wire.Log, fmt.Appendf(nil, "vm: "+format, args...))
}

// waitClosed returns when the host has closed its end, which it does on the
// exit status. Powering off before would lose what QEMU has not passed on.
func (l *line) waitClosed() {
	select {
	case <-l.closed:
	case <-time.After(closeTimeout):
	}
}

// receive handles frames from the host until it goes away; then the command,
// if it still runs, is killed.
func (l *line) receive() {
	defer close(l.closed)
	r := wire.NewReader(bufio.NewReaderSize(l.port, wire.MaxPayload))
	for {
		f, err := r.Read()
		if err != nil {
			l.in.end()
			l.kill(syscall.SIGKILL)
			return
		}
		switch f.Kind {
		case wire.StdinData:
			l.in.put(f.Payload)
		case wire.StdinEOF:
			l.in.end()
		case wire.Signal:
			l.kill(syscall.Signal(f.Uint32()))
		}
	}
}

// kill signals the command, waiting for it to have been started.
func (l *line) kill(sig syscall.Signal) {
	<-l.started
	if l.group > 0 {
		_ = syscall.Kill(-l.group, sig)
	}
}

// input is a queue between the port and the command's standard input, so that
// a command that does not read cannot keep a signal from arriving. The host
// never sends more than wire.StdinWindow ahead.
type input struct {
	mu    sync.Mutex
	ready *sync.Cond
	data  []byte
	eof   bool
}

func newInput() *input {
	in := &input{}
	in.ready = sync.NewCond(&in.mu)
	return in
}

func (in *input) put(p []byte) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.data = append(in.data, p...)
	in.ready.Signal()
}

func (in *input) end() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.eof = true
	in.ready.Signal()
}

// take waits for bytes; none means the end.
func (in *input) take() []byte {
	in.mu.Lock()
	defer in.mu.Unlock()
	for len(in.data) == 0 && !in.eof {
		in.ready.Wait()
	}
	p := in.data
	in.data = nil
	return p
}

// feed passes input to w until its end, and tells the host how far it is. A
// command that has closed its input still has the rest consumed.
func (l *line) feed(w io.WriteCloser) {
	defer w.Close()
	for p := l.in.take(); len(p) > 0; p = l.in.take() {
		_, _ = w.Write(p)
		_ = l.SendUint32(wire.StdinAck, uint32(len(p)))
	}
}
