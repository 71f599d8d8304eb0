package kernels

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// apt runs apt's programs with a configuration of our own, so that they see
// one suite and nothing of what the machine has installed, and change nothing
// outside dir.
type apt struct {
	dir    string
	mirror string
}

// aptConfig replaces every place that apt reads or writes but the machine's
// own apt.conf, where a proxy may be set. The sandbox user could not write
// below a home folder.
const aptConfig = `Dir::Etc::sourcelist "%[1]s/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "%[1]s/state";
Dir::State::lists "%[1]s/lists";
Dir::State::status "%[1]s/status";
Dir::Cache "%[1]s/cache";
APT::Architecture "amd64";
APT::Architectures { "amd64"; };
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::IndexTargets::deb::Contents-deb::DefaultEnabled "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Retries "3";
`

// newAPT writes the configuration for one suite below dir.
func newAPT(dir, suite string) (*apt, error) {
	return newAPTFrom(dir, suite, "/")
}

// newAPTFrom is newAPT for the machine whose own files are below root.
func newAPTFrom(dir, suite, root string) (*apt, error) {
	if _, err := exec.LookPath("apt-get"); err != nil {
		return nil, fmt.Errorf("set up apt: %w (kernels are fetched with apt, on Debian)", err)
	}
	m, err := findMirrors(filepath.Join(root, "etc/apt"))
	if err != nil {
		return nil, err
	}
	keyring, err := findKeyring(root)
	if err != nil {
		return nil, err
	}
	a := &apt{dir: dir, mirror: m.of(suite)}
	if err := a.write(suite, keyring); err != nil {
		return nil, fmt.Errorf("set up apt: %w", err)
	}
	return a, nil
}

func (a *apt) write(suite, keyring string) error {
	for _, d := range []string{"state", "lists/partial", "cache/archives/partial"} {
		if err := os.MkdirAll(filepath.Join(a.dir, d), 0o755); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"apt.conf":     fmt.Sprintf(aptConfig, a.dir),
		"sources.list": fmt.Sprintf("deb [signed-by=%s] %s %s main\n", keyring, a.mirror, suite),
		"status":       "",
	} {
		if err := os.WriteFile(filepath.Join(a.dir, name), []byte(text), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// run runs one of apt's programs in folder dir and returns its output.
func (a *apt) run(ctx context.Context, dir, name string, args ...string) (string, error) {
	args = append([]string{"--config-file=" + filepath.Join(a.dir, "apt.conf"), "--quiet=2"}, args...)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "DEBIAN_FRONTEND=noninteractive")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w%s", name, args[2], err, a.complaint(stderr.String()))
	}
	return stdout.String(), nil
}

// hostPart is what complaint takes out of addresses: whom a machine fetches
// from is nobody's business, and it would end up in logs.
var hostPart = regexp.MustCompile(`([a-z+]+://)[^/\s]+`)

// complaint returns the end of what apt wrote, without host names.
func (a *apt) complaint(text string) string {
	if host := hostPart.FindString(a.mirror); host != "" {
		_, name, _ := strings.Cut(host, "://")
		text = strings.ReplaceAll(text, name, "MIRROR")
	}
	text = hostPart.ReplaceAllString(strings.TrimSpace(text), "${1}MIRROR")
	lines := strings.Split(text, "\n")
	lines = lines[max(0, len(lines)-5):]
	if text == "" {
		return ""
	}
	return "\n\t" + strings.Join(lines, "\n\t")
}

// update fetches and verifies the suite's lists.
func (a *apt) update(ctx context.Context, suite string) error {
	_, err := a.run(ctx, a.dir, "apt-get", "update", "--error-on=any")
	if err != nil && strings.Contains(err.Error(), "does not have a Release file") {
		return fmt.Errorf("suite %s: the machine's mirror does not have it, or no longer: %w", suite, err)
	}
	if err != nil {
		return fmt.Errorf("suite %s: %w", suite, err)
	}
	return nil
}

// errNoPackage says that a suite does not have a package.
var errNoPackage = errors.New("no such package")

// show returns the fields of a package's newest version, names in lower case.
func (a *apt) show(ctx context.Context, pkg string) (map[string]string, error) {
	text, err := a.run(ctx, a.dir, "apt-cache", "show", "--no-all-versions", pkg)
	if err != nil && strings.Contains(err.Error(), "No packages found") {
		return nil, fmt.Errorf("package %s: %w", pkg, errNoPackage)
	}
	if err != nil {
		return nil, err
	}
	stanza, _, _ := strings.Cut(text, "\n\n")
	f := fields(stanza)
	if f["version"] == "" {
		return nil, fmt.Errorf("package %s: %w", pkg, errNoPackage)
	}
	return f, nil
}

// download fetches and verifies packages into dir.
func (a *apt) download(ctx context.Context, dir string, pkgs []string) error {
	_, err := a.run(ctx, dir, "apt-get", append([]string{"download"}, pkgs...)...)
	return err
}
