package kimage

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/kallscope/kallscope/internal/deb"
)

// isPackage says whether b is a Debian package.
func (b blob) isPackage() bool {
	start, err := b.start(int64(len(deb.Magic)))
	return err == nil && string(start) == deb.Magic
}

// kernelPath and configPath are where Debian's packages have them, the second
// form from 7.3 on.
var (
	kernelPath = regexp.MustCompile(`^(boot/vmlinu[xz]-|(usr/)?lib/modules/[^/]+/vmlinu[xz]$)`)
	configPath = regexp.MustCompile(`^(boot/config-|(usr/)?lib/modules/[^/]+/config$)`)
	modulePath = regexp.MustCompile(`^(usr/)?lib/modules/[^/]+/.*\.ko(\.xz|\.zst|\.gz)?$`)
)

// Bounds of files in packages.
const (
	maxConfig = 4 << 20
	maxPacked = 256 << 20 // of a module
)

// packages are Debian packages of one kernel.
type packages struct {
	files  []namedBlob
	config []byte

	mu     sync.Mutex
	parked *cursor // stands behind the kernel and in front of all modules
}

// cursor is a place in the packages.
type cursor struct {
	files []namedBlob // the open one and those behind it
	deb   *deb.Reader
}

func (p *packages) start() *cursor { return &cursor{files: p.files} }

// next returns the next regular file, or io.EOF behind the last.
func (c *cursor) next() (*deb.File, error) {
	for len(c.files) > 0 {
		current := c.files[0]
		if c.deb == nil {
			var err error
			if c.deb, err = deb.NewReader(io.NewSectionReader(current.blob.r, 0, current.blob.size)); err != nil {
				return nil, fmt.Errorf("%s: %w", current.name, err)
			}
		}
		file, err := c.deb.Next()
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: %w", current.name, err)
		}
		if err := c.Close(); err != nil {
			return nil, fmt.Errorf("%s: %w", current.name, err)
		}
		c.files = c.files[1:]
	}
	return nil, io.EOF
}

// Close releases the package that is open.
func (c *cursor) Close() error {
	if c.deb == nil {
		return nil
	}
	err := c.deb.Close()
	c.deb = nil
	return err
}

// kernel reads packages up to the kernel, and remembers the place if no module
// was before it: then the modules need no unpacking from the start.
func (p *packages) kernel() (namedBlob, error) {
	c, modules := p.start(), 0
	for {
		file, err := c.next()
		switch {
		case errors.Is(err, io.EOF):
			return namedBlob{}, fmt.Errorf("%s: %w: no boot/vmlinuz-* and no usr/lib/modules/*/vmlinuz in the package, %d modules; from 7.3 on Debian's kernel is in linux-binary-*", p.names(), errNotKernel, modules)
		case err != nil:
			return namedBlob{}, errors.Join(err, c.Close())
		case modulePath.MatchString(file.Name):
			modules++
		case configPath.MatchString(file.Name):
			if p.config, err = file.Content(maxConfig); err != nil {
				return namedBlob{}, errors.Join(fmt.Errorf("%s: %w", c.files[0].name, err), c.Close())
			}
		case kernelPath.MatchString(file.Name):
			return p.found(c, file, modules == 0)
		}
	}
}

func (p *packages) found(c *cursor, file *deb.File, park bool) (namedBlob, error) {
	name := c.files[0].name + ": " + file.Name
	content, err := file.Content(maxImage)
	if err != nil {
		return namedBlob{}, errors.Join(fmt.Errorf("%s: %w", name, err), c.Close())
	}
	if park {
		p.parked = c
		return namedBlob{name, memBlob(content)}, nil
	}
	return namedBlob{name, memBlob(content)}, c.Close()
}

func (p *packages) names() string {
	var names []string
	for _, f := range p.files {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// modules returns where to read modules from.
func (p *packages) modules() *cursor {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c := p.parked; c != nil {
		p.parked = nil
		return c
	}
	return p.start()
}

// Close releases the place that is remembered.
func (p *packages) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.parked == nil {
		return nil
	}
	err := p.parked.Close()
	p.parked = nil
	return err
}

// Modules returns the modules in the packages, in their order; none if the
// kernel was not opened from packages. Each keeps its compressed bytes, and is
// unpacked when it is asked for more than its name, which may happen in several
// goroutines. The first error ends the sequence.
//
// The first call goes on where [Open] stopped, others unpack the packages from
// the start.
func (im *Image) Modules() iter.Seq2[*Module, error] {
	return func(yield func(*Module, error) bool) {
		if im.packages == nil {
			return
		}
		c := im.packages.modules()
		defer c.Close() // what it could say was said by next
		for {
			file, err := c.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil && !modulePath.MatchString(file.Name) {
				continue
			}
			var m *Module
			if err == nil {
				m, err = im.module(file)
			}
			if !yield(m, err) || err != nil {
				return
			}
		}
	}
}

func (im *Image) module(file *deb.File) (*Module, error) {
	content, err := file.Content(maxPacked)
	if err != nil {
		return nil, err
	}
	m := newModule(path.Base(file.Name), content)
	m.image = im
	return m, nil
}

// Config returns the configuration that the kernel was built with, /boot/config,
// from the packages or, where CONFIG_IKCONFIG put it there, from the image. It
// fails with [ErrAbsent] where there is neither.
func (im *Image) Config() ([]byte, error) {
	if im.packages != nil && im.packages.config != nil {
		return im.packages.config, nil
	}
	return im.file.space.config()
}
