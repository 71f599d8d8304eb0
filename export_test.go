package kallscope

import "bytes"

// OpenBytes is Open for a snapshot in memory.
func OpenBytes(data []byte) (*Kernel, error) {
	return openSnapshot(bytes.NewReader(data), int64(len(data)))
}
