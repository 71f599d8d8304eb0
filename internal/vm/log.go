package vm

import (
	"bytes"
	"io"
	"sync"
)

// maxLog bounds the kernel log that is kept.
const maxLog = 1 << 20

// kernelLog keeps the end of the kernel log. Safe for concurrent use.
type kernelLog struct {
	mu   sync.Mutex
	buf  []byte
	also io.Writer // may be nil
}

// Write adds p without carriage returns, which the serial console adds. It
// never fails: a log that cannot be shown must not stop the guest.
func (l *kernelLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := bytes.ReplaceAll(p, []byte{'\r'}, nil)
	l.buf = append(l.buf, text...)
	if len(l.buf) > 2*maxLog {
		l.buf = append(l.buf[:0], l.buf[len(l.buf)-maxLog:]...)
	}
	if l.also != nil {
		_, _ = l.also.Write(text)
	}
	return len(p), nil
}

// line adds a line of its own.
func (l *kernelLog) line(p []byte) {
	_, _ = l.Write(append(bytes.Clone(p), '\n'))
}

func (l *kernelLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.buf[max(0, len(l.buf)-maxLog):])
}
