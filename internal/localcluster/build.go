// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Build compiles the missing binaries of such a cluster into the cache, and returns their
// directory, which envtest accepts as KUBEBUILDER_ASSETS. The first build takes minutes; later ones
// only compare stamps. It returns an error outside a checkout, without a go command, and if a
// package does not compile.
func Build(ctx context.Context, o Options) (string, error) {
	return o.build(ctx, targetsFor(o.ControlPlaneOnly))
}

func (o Options) build(ctx context.Context, needed []target) (string, error) {
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
		compile: func(ctx context.Context, t target, out string) error {
			return o.compile(ctx, sets, t, out)
		},
	}
	return o.binDir(), b.build(ctx, needed)
}

// builder compiles binaries into the cache directory of one version.
type builder struct {
	dir      string
	sets     map[string]moduleSet
	progress io.Writer
	// compile writes the target to the file out.
	compile func(ctx context.Context, t target, out string) error
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
	missing := b.missing(needed)
	for i, t := range missing {
		if err := b.one(ctx, t, fmt.Sprintf("%d/%d", i+1, len(missing))); err != nil {
			return err
		}
	}
	return nil
}

// missing returns the targets without a file, or with a file of another module set.
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

// one builds a target beside its final name. The rename is atomic, so that no process runs an
// incomplete binary. The stamp is written last, so that an interrupted build is repeated.
func (b builder) one(ctx context.Context, t target, count string) error {
	_, _ = fmt.Fprintf(b.progress, "building %s (%s) ... ", t.name, count)
	start := time.Now()
	partial := filepath.Join(b.dir, "bin", "."+t.name+".partial")
	if err := b.compile(ctx, t, partial); err != nil {
		_, _ = fmt.Fprintln(b.progress, "failed")
		return fmt.Errorf("cannot build %s: %w", t.name, err)
	}
	if err := os.Rename(partial, b.file(t)); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(b.progress, "%.1f s\n", time.Since(start).Seconds())
	return os.WriteFile(b.stamp(t), []byte(b.key(t)), 0o644)
}

func (b builder) file(t target) string  { return filepath.Join(b.dir, "bin", t.name) }
func (b builder) stamp(t target) string { return filepath.Join(b.dir, "stamps", t.name) }
func (b builder) key(t target) string   { return b.sets[t.set].key }

// compile builds one target with the go command.
func (o Options) compile(ctx context.Context, sets map[string]moduleSet, t target, out string) error {
	if t.set == pauseSet {
		return buildPauseImage(ctx, out)
	}
	set := sets[t.set]
	if err := o.deriveIfMissing(ctx, set.dir); err != nil {
		return err
	}
	// Without debug information, which these binaries do not need, compiling takes a tenth less.
	_, err := runGo(ctx, set.dir, "build", "-trimpath", "-buildvcs=false", "-gcflags=all=-dwarf=false",
		"-ldflags", strings.TrimSpace(t.linkerFlags(o.KubernetesVersion)), "-o", out, t.pkg)
	return err
}
