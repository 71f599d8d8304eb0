package guest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kallscope/kallscope/internal/vm/wire"
)

// sendFiles sends each root, a file or a folder with all below it. A root
// that does not exist is reported as missing, for the host to judge.
func sendFiles(l *line, roots []string) error {
	for _, root := range roots {
		_, err := os.Stat(root)
		if errors.Is(err, fs.ErrNotExist) {
			err = l.SendJSON(wire.FileHead, wire.File{Root: root, Path: root, Missing: true})
		} else if err == nil {
			err = sendTree(l, root)
		}
		if err != nil {
			return fmt.Errorf("send %s: %w", root, err)
		}
	}
	return nil
}

func sendTree(l *line, root string) error {
	return filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Stat(p)
		if err != nil {
			return err
		}
		if !info.IsDir() && !info.Mode().IsRegular() {
			return nil // devices and sockets mean nothing on the host
		}
		head := wire.File{Root: root, Path: p, Mode: uint32(info.Mode())}
		if err := l.SendJSON(wire.FileHead, head); err != nil || info.IsDir() {
			return err
		}
		return sendData(l, p)
	})
}

func sendData(l *line, file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(l.Stream(wire.FileData), f)
	return err
}
