package wire

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestFrames(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	long := bytes.Repeat([]byte("abc\x00"), MaxPayload/2)
	qt.Assert(t, qt.IsNil(w.Send(Hello, nil)))
	n, err := w.Stream(Stdout).Write(long)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(n, len(long)))
	qt.Assert(t, qt.IsNil(w.SendUint32(Signal, 2)))
	qt.Assert(t, qt.IsNil(w.SendJSON(Exit, Status{Code: 3})))

	r := NewReader(&b)
	f, err := r.Read()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(f.Kind, Hello))
	var got []byte
	for range 2 {
		f, err = r.Read()
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(f.Kind, Stdout))
		got = append(got, f.Payload...)
	}
	qt.Assert(t, qt.IsTrue(bytes.Equal(got, long)))
	f, _ = r.Read()
	qt.Assert(t, qt.Equals(f.Uint32(), 2))
	f, _ = r.Read()
	qt.Assert(t, qt.Equals(string(f.Payload), `{"Code":3,"Signal":0,"Err":""}`))
	_, err = r.Read()
	qt.Assert(t, qt.Equals(err, io.EOF))
}

func TestStreamEmpty(t *testing.T) {
	var b bytes.Buffer
	n, err := NewWriter(&b).Stream(Stdout).Write(nil)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(n+b.Len(), 0))
}

func TestReadErrors(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"head", "o\x01", "unexpected EOF"},
		{"cut", "o\x05\x00\x00\x00abc", `frame 'o': unexpected EOF`},
		{"length", "o\xff\xff\xff\xff", `frame 'o' of 4294967295 bytes, at most 65536`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := NewReader(bytes.NewReader([]byte(tc.in))).Read()
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
		})
	}
}

func TestSendJSONTooLong(t *testing.T) {
	err := NewWriter(io.Discard).SendJSON(Exit, Status{Err: string(make([]byte, MaxPayload))})
	qt.Assert(t, qt.ErrorMatches(err, `frame x: \d+ bytes of JSON, at most 65536`))
}

func FuzzRead(f *testing.F) {
	f.Add([]byte("o\x03\x00\x00\x00abcx\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := NewReader(bytes.NewReader(data))
		for {
			if _, err := r.Read(); err != nil {
				clean := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
				qt.Assert(t, qt.IsTrue(clean || len(data) >= 5))
				return
			}
		}
	})
}
