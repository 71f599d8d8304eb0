// Package wire is what host and guest say to each other: a [Config] that
// travels inside the initial RAM file system, and frames over one virtio
// serial port.
//
// A frame is a kind (one byte), a length (four bytes, little endian) and that
// many bytes, at most [MaxPayload]. Frames of all kinds share the port, so
// their order is the order of events, and no stream can be mistaken for
// another whatever bytes it carries.
//
// Both sides are always built from the same source, so there is no version.
package wire

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
)

// Kind says what a frame carries.
type Kind byte

// Frames from guest to host.
const (
	Stdout   Kind = 'o' // bytes
	Stderr   Kind = 'e' // bytes
	Hello    Kind = 'h' // the guest is up; no payload
	Log      Kind = 'l' // a line of init's own, for the kernel log
	Started  Kind = 's' // the command runs; no payload
	StdinAck Kind = 'a' // uint32: bytes of standard input consumed
	FileHead Kind = 'f' // File
	FileData Kind = 'd' // bytes of the file announced last
	Exit     Kind = 'x' // Status; the last frame
)

// Frames from host to guest.
const (
	StdinData Kind = 'i' // bytes
	StdinEOF  Kind = 'c' // no payload
	Signal    Kind = 'k' // uint32: number of a signal for the command's group
)

const (
	// MaxPayload is the longest payload. virtio_console moves at most 32 KiB
	// per request (port_fops_write), so more would not be faster.
	MaxPayload = 64 << 10
	// StdinWindow is how much standard input may be on its way unconsumed.
	StdinWindow = 256 << 10
	// PortName names the virtio serial port.
	PortName = "kallscope.vm"
	// ConfigPath is where the guest finds its Config.
	ConfigPath = "/.vm/config.json"
	// Marker is the environment variable that tells init it is one: the
	// kernel passes parameters it does not know to init's environment.
	Marker = "KALLSCOPE_VM"
)

// Config tells the guest what to do.
type Config struct {
	Path      string
	Args      []string // with argv[0]
	Env       []string
	Dir       string
	UID       int
	NoMount   []string
	Transport []string          // modules that carry the port, in order
	Modules   []string          // other modules, in order
	Lenient   bool              // modules may refuse to load
	Sysctl    map[string]string // names with dots
	Fetch     []string          // files and folders to send back
	Stdin     bool
}

// File announces a file that the guest sends.
type File struct {
	// Root is the entry of Config.Fetch, Path the file or folder itself.
	Root, Path string
	// Mode is that of io/fs.FileMode.
	Mode uint32
	// Missing says that there is no such file; Root equals Path then.
	Missing bool
}

// Status is how the command ended.
type Status struct {
	Code   int
	Signal int
	// Err is set when the command could not be run at all.
	Err string
}

// Writer sends frames. Safe for concurrent use.
type Writer struct {
	mu sync.Mutex
	w  io.Writer
}

// NewWriter returns a Writer on top of w.
func NewWriter(w io.Writer) *Writer {
	return &Writer{w: w}
}

// Send writes p as frames of kind, several if p is long, one if it is empty.
func (w *Writer) Send(kind Kind, p []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		n := min(len(p), MaxPayload)
		buf := make([]byte, 5, 5+n)
		buf[0] = byte(kind)
		binary.LittleEndian.PutUint32(buf[1:], uint32(n))
		if _, err := w.w.Write(append(buf, p[:n]...)); err != nil {
			return err
		}
		if p = p[n:]; len(p) == 0 {
			return nil
		}
	}
}

// SendJSON sends v as one frame.
func (w *Writer) SendJSON(kind Kind, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(data) > MaxPayload {
		return fmt.Errorf("frame %c: %d bytes of JSON, at most %d", kind, len(data), MaxPayload)
	}
	return w.Send(kind, data)
}

// SendUint32 sends v as one frame.
func (w *Writer) SendUint32(kind Kind, v uint32) error {
	return w.Send(kind, binary.LittleEndian.AppendUint32(nil, v))
}

// Stream returns an io.Writer whose bytes become frames of kind.
func (w *Writer) Stream(kind Kind) io.Writer {
	return stream{w, kind}
}

type stream struct {
	w    *Writer
	kind Kind
}

func (s stream) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if err := s.w.Send(s.kind, p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Frame is one message. Its payload is valid until the next Read.
type Frame struct {
	Kind    Kind
	Payload []byte
}

// Uint32 returns the number in the payload, zero if there is none.
func (f Frame) Uint32() uint32 {
	if len(f.Payload) != 4 {
		return 0
	}
	return binary.LittleEndian.Uint32(f.Payload)
}

// Reader receives frames. Not safe for concurrent use.
type Reader struct {
	r   io.Reader
	buf []byte
}

// NewReader returns a Reader on top of r, which should be buffered.
func NewReader(r io.Reader) *Reader {
	return &Reader{r: r, buf: make([]byte, MaxPayload)}
}

// Read returns the next frame; io.EOF only between frames.
func (r *Reader) Read() (Frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return Frame{}, err
	}
	n := binary.LittleEndian.Uint32(head[1:])
	if n > MaxPayload {
		return Frame{}, fmt.Errorf("frame %q of %d bytes, at most %d", head[0], n, MaxPayload)
	}
	if _, err := io.ReadFull(r.r, r.buf[:n]); err != nil {
		return Frame{}, fmt.Errorf("frame %q: %w", head[0], io.ErrUnexpectedEOF)
	}
	return Frame{Kind: Kind(head[0]), Payload: r.buf[:n]}, nil
}
