package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const commandsDir = "commands"

// commandPages returns a page per command of kallscope, which is built from the
// module at root.
func commandPages(root string) (map[string][]byte, error) {
	k, err := buildKallscope(root)
	if err != nil {
		return nil, err
	}
	defer k.remove()
	pages := map[string][]byte{}
	err = k.walk(func(command []string, help string) error {
		pages[pageName(command)] = page(command, help)
		return nil
	})
	return pages, err
}

func pageName(command []string) string {
	return filepath.Join(commandsDir, strings.Join(slices.Concat([]string{"kallscope"}, command), "-")+".md")
}

// page is what --help says. Of a command with subcommands it links to theirs.
func page(command []string, help string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n%s\n\n```\n%s\n```\n", strings.Join(slices.Concat([]string{"kallscope"}, command), " "), generated, strings.TrimSpace(help))
	for i, sub := range subcommands(help) {
		if i == 0 {
			b.WriteString("\n")
		}
		file := filepath.Base(pageName(append(slices.Clip(command), sub)))
		fmt.Fprintf(&b, "* [%s](%s)\n", strings.TrimSuffix(file, ".md"), file)
	}
	return []byte(b.String())
}

// kallscopeBinary is the command, in a folder of its own.
type kallscopeBinary struct{ dir string }

func buildKallscope(root string) (*kallscopeBinary, error) {
	dir, err := os.MkdirTemp("", "mkdocs-")
	if err != nil {
		return nil, err
	}
	k := &kallscopeBinary{dir}
	cmd := exec.Command("go", "build", "-o", k.path(), "./cmd/kallscope")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		k.remove()
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return k, nil
}

func (k *kallscopeBinary) path() string { return filepath.Join(k.dir, "kallscope") }
func (k *kallscopeBinary) remove()      { _ = os.RemoveAll(k.dir) }

// walk calls f with every command, the bare kallscope first, and its help.
func (k *kallscopeBinary) walk(f func(command []string, help string) error) error {
	return k.walkFrom(nil, f)
}

func (k *kallscopeBinary) walkFrom(command []string, f func(command []string, help string) error) error {
	cmd := exec.Command(k.path(), append(slices.Clip(command), "--help")...)
	help, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("%s: %w", cmd, err)
	}
	if err := f(command, string(help)); err != nil {
		return err
	}
	for _, sub := range subcommands(string(help)) {
		if err := k.walkFrom(append(slices.Clip(command), sub), f); err != nil {
			return err
		}
	}
	return nil
}

// subcommands returns the commands of our own that a help text lists; help and
// completion come with the library.
func subcommands(help string) []string {
	var names []string
	_, list, _ := strings.Cut(help, "\nAvailable Commands:\n")
	for line := range strings.Lines(list) {
		words := strings.Fields(line)
		if len(words) == 0 || line[0] != ' ' {
			break
		}
		if words[0] != "help" && words[0] != "completion" {
			names = append(names, words[0])
		}
	}
	return names
}
