// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
)

// upstreamModule has the relevant members of the output of "go mod edit -json".
type upstreamModule struct {
	Go      string
	Require []struct{ Path, Version string }
}

func (o Options) derivedSetDir() string {
	return filepath.Join(o.versionDir(), "modules", kubernetesSet)
}

// deriveIfMissing writes the Kubernetes module set of a version that modules/ does not pin. It
// does not change the pinned set.
func (o Options) deriveIfMissing(ctx context.Context, dir string) error {
	if dir != o.derivedSetDir() {
		return nil
	}
	if _, err := os.Stat(filepath.Join(dir, "go.sum")); err == nil {
		return nil
	}
	upstream, err := readUpstream(ctx, o.KubernetesVersion)
	if err != nil {
		return fmt.Errorf("%s=%s: %w", VersionVariable, o.KubernetesVersion, err)
	}
	// tidy can be interrupted, so it works in a copy that is renamed at the end.
	partial := dir + ".partial"
	if err := os.RemoveAll(partial); err != nil {
		return err
	}
	if err := os.MkdirAll(partial, 0o755); err != nil {
		return err
	}
	mod := moduleFile(o.KubernetesVersion, upstream)
	if err := os.WriteFile(filepath.Join(partial, "go.mod"), []byte(mod), 0o644); err != nil {
		return err
	}
	if _, err := runGo(ctx, partial, "mod", "tidy"); err != nil {
		return err
	}
	return os.Rename(partial, dir)
}

// readUpstream downloads a version of k8s.io/kubernetes and reads its go.mod.
func readUpstream(ctx context.Context, version string) (upstreamModule, error) {
	var upstream upstreamModule
	downloaded, err := runGo(ctx, os.TempDir(), "mod", "download", "-json", "k8s.io/kubernetes@"+version)
	if err != nil {
		return upstream, err
	}
	var module struct{ GoMod string }
	if err := json.Unmarshal(downloaded, &module); err != nil {
		return upstream, fmt.Errorf("cannot read the answer of go mod download: %w", err)
	}
	edited, err := runGo(ctx, os.TempDir(), "mod", "edit", "-json", module.GoMod)
	if err != nil {
		return upstream, err
	}
	if err := json.Unmarshal(edited, &upstream); err != nil {
		return upstream, fmt.Errorf("cannot read the answer of go mod edit: %w", err)
	}
	return upstream, nil
}

// moduleFile returns the go.mod for the Kubernetes targets of a version.
//
// k8s.io/kubernetes requires the libraries of its own repository at v0.0.0, which does not exist:
// they are published as v0.X.Y with each v1.X.Y. The replacements make it buildable as a
// dependency.
func moduleFile(version string, upstream upstreamModule) string {
	var text strings.Builder
	_, _ = fmt.Fprintf(&text, "module localcluster/%s\n\ngo %s\n\ntool (\n", kubernetesSet, upstream.Go)
	for _, t := range targets {
		if t.set == kubernetesSet {
			_, _ = fmt.Fprintf(&text, "\t%s\n", t.pkg)
		}
	}
	_, _ = fmt.Fprintf(&text, ")\n\nrequire k8s.io/kubernetes %s\n\nreplace (\n", version)
	published := "v0." + strings.TrimPrefix(version, "v1.")
	for _, path := range stagingModules(upstream) {
		_, _ = fmt.Fprintf(&text, "\t%s => %s %s\n", path, path, published)
	}
	text.WriteString(")\n")
	return text.String()
}

// stagingModules returns the libraries of the Kubernetes repository.
func stagingModules(upstream upstreamModule) []string {
	var paths []string
	for _, r := range upstream.Require {
		if r.Version == "v0.0.0" && strings.HasPrefix(r.Path, "k8s.io/") {
			paths = append(paths, r.Path)
		}
	}
	sort.Strings(paths)
	return paths
}
