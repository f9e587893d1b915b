// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Build compiles the missing binaries of such a cluster into the cache, and returns their
// directory, which envtest accepts as KUBEBUILDER_ASSETS. The first build takes minutes; later ones
// only compare stamps. It returns an error outside a checkout, without a go command, and if a
// package does not compile.
func Build(ctx context.Context, o Options) (string, error) {
	o, err := o.withDefaults()
	if err != nil {
		return "", err
	}
	sets, err := o.moduleSets()
	if err != nil {
		return "", err
	}
	b := builder{
		dir:       o.versionDir(),
		sets:      sets,
		progress:  o.Progress,
		downloads: o.downloads(sets[pinnedSet].etcd),
		compile: func(ctx context.Context, group []target, dir string) error {
			return o.compile(ctx, sets[group[0].set], group, dir)
		},
	}
	return o.binDir(), b.build(ctx, o.targets())
}

// builder compiles binaries into the cache directory of one version.
type builder struct {
	dir      string
	sets     map[string]moduleSet
	progress io.Writer
	// downloads are the official binaries, by name.
	downloads map[string]download
	// compile writes targets of one module set to the files of their names in the directory dir.
	compile func(ctx context.Context, group []target, dir string) error
}

// build compiles what is missing. It checks first without the lock, which is the usual case and
// does not wait, and again with the lock, because another build may have finished meanwhile.
func (b builder) build(ctx context.Context, needed []target) error {
	if len(b.missing(needed)) == 0 {
		return nil
	}
	for _, dir := range []string{"bin", "stamps"} {
		if err := os.MkdirAll(filepath.Join(b.dir, dir), 0o755); err != nil {
			return err
		}
	}
	unlock, err := lockFile(ctx, filepath.Join(b.dir, "lock"), func() {
		_, _ = fmt.Fprintf(b.progress, "waiting for another build in %s to finish\n", b.dir)
	})
	if err != nil {
		return err
	}
	defer unlock()
	for _, group := range b.groups(b.missing(needed)) {
		if err := b.together(ctx, group); err != nil {
			return err
		}
	}
	return nil
}

// missing returns the targets without a file, or with a file of another module set, or with one that was
// truncated or replaced.
func (b builder) missing(needed []target) []target {
	var missing []target
	for _, t := range needed {
		stamp, err := os.ReadFile(b.stamp(t))
		want, keyErr := b.key(t)
		if err != nil || keyErr != nil || string(stamp) != want {
			missing = append(missing, t)
		}
	}
	return missing
}

// groups returns the targets of each module set: one go command compiles them together.
func (b builder) groups(missing []target) [][]target {
	var groups [][]target
	for _, t := range missing {
		i := slices.IndexFunc(groups, func(group []target) bool { return b.sets[group[0].set] == b.sets[t.set] })
		if i < 0 {
			groups = append(groups, []target{t})
			continue
		}
		groups[i] = append(groups[i], t)
	}
	return groups
}

// together downloads or builds the targets of a group beside their final names. Each rename is atomic, so that no
// process runs an incomplete binary. A stamp is written last, so that an interrupted build is
// repeated: what the go command had compiled is in its cache.
func (b builder) together(ctx context.Context, group []target) error {
	partial := filepath.Join(b.dir, "partial")
	defer func() { _ = os.RemoveAll(partial) }()
	if err := errors.Join(os.RemoveAll(partial), os.MkdirAll(partial, 0o755)); err != nil {
		return err
	}
	rest, err := b.fetch(ctx, group, partial)
	if err != nil {
		return err
	}
	if err := b.compileAll(ctx, rest, partial); err != nil {
		return err
	}
	for _, t := range group {
		if err := os.Rename(filepath.Join(partial, t.name), b.file(t)); err != nil {
			return err
		}
		key, err := b.key(t)
		if err := errors.Join(err, os.WriteFile(b.stamp(t), []byte(key), 0o644)); err != nil {
			return err
		}
	}
	return nil
}

func (b builder) compileAll(ctx context.Context, group []target, dir string) error {
	if len(group) == 0 {
		return nil
	}
	var all []string
	for _, t := range group {
		all = append(all, t.name)
	}
	names := strings.Join(all, ", ")
	_, _ = fmt.Fprintf(b.progress, "building %s\n", names)
	start := time.Now()
	if err := b.compile(ctx, group, dir); err != nil {
		return fmt.Errorf("cannot build %s: %w", names, err)
	}
	_, _ = fmt.Fprintf(b.progress, "built in %.1f s\n", time.Since(start).Seconds())
	return nil
}

func (b builder) file(t target) string  { return filepath.Join(b.dir, "bin", t.name) }
func (b builder) stamp(t target) string { return filepath.Join(b.dir, "stamps", t.name+".txt") }

// key identifies the module set of a target, and its file by size and mode: a hash would take longer than
// the rest of a start.
func (b builder) key(t target) (string, error) {
	file, err := os.Stat(b.file(t))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %d %s", b.sets[t.set].key, file.Size(), file.Mode()), nil
}

// compile builds targets of one module set with one go command.
func (o Options) compile(ctx context.Context, set moduleSet, group []target, dir string) error {
	if group[0].set == pauseSet {
		return buildPauseImage(ctx, filepath.Join(dir, group[0].name))
	}
	if err := o.deriveIfMissing(ctx, set.dir); err != nil {
		return err
	}
	args := []string{"build", "-v", "-ldflags", linkerFlags(o.KubernetesVersion), "-o", dir + "/"}
	for _, t := range group {
		args = append(args, t.pkg)
	}
	if err := runGoWithProgress(ctx, set.dir, o.Progress, args...); err != nil {
		return err
	}
	for _, t := range group {
		if t.built() != t.name {
			if err := os.Rename(filepath.Join(dir, t.built()), filepath.Join(dir, t.name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// lockFile locks a file, which stays there. If another process or goroutine holds the lock, it calls
// busy and waits. The kernel releases the lock when its holder dies.
func lockFile(ctx context.Context, path string, busy func()) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	// Waiting for flock cannot be cancelled.
	lock := func(context.Context) error { return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
	if err = lock(ctx); errors.Is(err, unix.EWOULDBLOCK) {
		busy()
		err = poll(ctx, "the lock", lock)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("cannot lock %s: %w", path, err)
	}
	return func() { _ = file.Close() }, nil
}
