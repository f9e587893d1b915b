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
	"strings"
	"time"
)

// Build makes sure that the cache holds every binary such a cluster needs and
// returns their directory, which is also what envtest wants as
// KUBEBUILDER_ASSETS. The first build takes minutes; later ones only compare
// stamps. It fails outside a checkout, without a go command, and when a package
// does not compile.
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
		dir:      o.versionDir(),
		sets:     sets,
		progress: o.Progress,
		compile: func(ctx context.Context, together []target, dir string) error {
			return o.compile(ctx, sets, together, dir)
		},
	}
	return o.binDir(), b.build(ctx, targetsFor(o.ControlPlaneOnly))
}

// builder fills one version's directory of the cache.
type builder struct {
	dir      string
	sets     map[string]moduleSet
	progress io.Writer
	// compile writes targets of one module set to files of their names in dir.
	compile func(ctx context.Context, together []target, dir string) error
}

// build compiles what is missing. It looks twice: once without the lock, which
// is the usual case and does not wait, and again under the lock, because
// another build may have done the work meanwhile.
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
	groups := bySet(b.missing(needed))
	for i, group := range groups {
		if err := b.group(ctx, group, fmt.Sprintf("%d/%d", i+1, len(groups))); err != nil {
			return err
		}
	}
	return nil
}

// missing returns the targets whose file is absent or from another module set.
func (b builder) missing(needed []target) []target {
	var missing []target
	for _, t := range needed {
		stamp, err := os.ReadFile(b.stamp(t))
		if err == nil {
			_, err = os.Stat(b.file(t))
		}
		if err != nil || string(stamp) != b.key(t) {
			missing = append(missing, t)
		}
	}
	return missing
}

// bySet groups targets by their module set, in their order.
func bySet(all []target) [][]target {
	var groups [][]target
	at := map[string]int{}
	for _, t := range all {
		i, found := at[t.set]
		if !found {
			i, at[t.set] = len(groups), len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], t)
	}
	return groups
}

// group builds the targets of a module set together: one go command compiles on all
// processors while it links. It builds beside the final names. Renaming is atomic, so no
// process ever runs half a binary, and the stamp comes last, so an interrupted build is
// repeated.
func (b builder) group(ctx context.Context, group []target, count string) error {
	var names []string
	for _, t := range group {
		names = append(names, t.name)
	}
	what := strings.Join(names, ", ")
	_, _ = fmt.Fprintf(b.progress, "building %s (%s) ... ", what, count)
	start := time.Now()
	partial := filepath.Join(b.dir, "bin", ".partial")
	defer func() { _ = os.RemoveAll(partial) }()
	if err := errors.Join(os.RemoveAll(partial), os.Mkdir(partial, 0o755)); err != nil {
		return err
	}
	if err := b.compile(ctx, group, partial); err != nil {
		_, _ = fmt.Fprintln(b.progress, "failed")
		return fmt.Errorf("cannot build %s: %w", what, err)
	}
	for _, t := range group {
		if err := os.Rename(filepath.Join(partial, t.name), b.file(t)); err != nil {
			return err
		}
		if err := os.WriteFile(b.stamp(t), []byte(b.key(t)), 0o644); err != nil {
			return err
		}
	}
	_, _ = fmt.Fprintf(b.progress, "%.1f s\n", time.Since(start).Seconds())
	return nil
}

func (b builder) file(t target) string  { return filepath.Join(b.dir, "bin", t.name) }
func (b builder) stamp(t target) string { return filepath.Join(b.dir, "stamps", t.name) }
func (b builder) key(t target) string   { return b.sets[t.set].key }

// compile builds targets of one module set with one go command.
func (o Options) compile(ctx context.Context, sets map[string]moduleSet, together []target, dir string) error {
	first := together[0]
	if first.set == pauseSet {
		return buildPauseImage(ctx, filepath.Join(dir, first.name))
	}
	set := sets[first.set]
	if err := o.deriveIfMissing(ctx, set.dir); err != nil {
		return err
	}
	out := dir + string(filepath.Separator) // go names each binary by its package
	if len(together) == 1 {
		out += first.name
	}
	// These binaries are not for debuggers, and to compile without what those need takes a
	// tenth less.
	arguments := []string{"build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags", strings.TrimSpace(first.linkerFlags(o.KubernetesVersion)), "-o", out}
	for _, t := range together {
		arguments = append(arguments, t.pkg)
	}
	_, err := runGo(ctx, set.dir, arguments...)
	return err
}
