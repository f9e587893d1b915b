// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"sort"
	"strings"
)

// modulesPath is the directory of the pinned module set in a checkout.
const modulesPath = "internal/dev/localcluster/modules"

// moduleSet is a directory with go.mod and go.sum, and a hash of their content.
type moduleSet struct {
	dir  string
	key  string
	etcd string // the version of etcd in it, if any
}

// findModules returns the directory of the pinned module set in the checkout around start. Walking up
// also works inside a nested module, where the go command would not find it.
func findModules(start string) (string, error) {
	for dir := start; ; dir = filepath.Dir(dir) {
		found := filepath.Join(dir, modulesPath)
		if _, err := os.Stat(filepath.Join(found, "go.mod")); err == nil {
			return found, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s is not inside a conversion-operator checkout: run this where %s is in the directory or above it",
				start, modulesPath)
		}
	}
}

// moduleSets reads the pinned set. The Kubernetes set of another version is in the cache, and may
// not exist yet, so its key is the version.
func (o Options) moduleSets() (map[string]moduleSet, error) {
	wd, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	modules, err := findModules(wd)
	if err != nil {
		return nil, err
	}
	pinned, err := readModuleSet(modules)
	if err != nil {
		return nil, err
	}
	sets := map[string]moduleSet{kubernetesSet: pinned, pinnedSet: pinned, pauseSet: {key: contentKey(pauseSource)}}
	if o.KubernetesVersion != DefaultKubernetesVersion {
		sets[kubernetesSet] = moduleSet{dir: o.derivedSetDir(), key: contentKey([]byte(o.KubernetesVersion))}
	}
	return sets, nil
}

func readModuleSet(dir string) (moduleSet, error) {
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return moduleSet{}, err
	}
	sum, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return moduleSet{}, err
	}
	return moduleSet{dir: dir, key: contentKey(mod, sum), etcd: etcdVersion(string(mod))}, nil
}

// contentKey hashes the contents and the processor architecture: machines may share a home
// directory.
func contentKey(contents ...[]byte) string {
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%s/%s\n", runtime.GOOS, runtime.GOARCH)
	for _, c := range contents {
		_, _ = fmt.Fprintf(hash, "%d\n%s", len(c), c)
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// The module sets. All binaries come from modules/, unless another version of Kubernetes is wanted:
// then its binaries come from a derived set. The pause image is built from this package instead.
const (
	kubernetesSet = "kubernetes"
	pinnedSet     = "pinned"
	pauseSet      = "pause"
)

// target is one file of the cache.
type target struct {
	name string
	set  string // the module set it belongs to
	pkg  string // the Go package to build
	node bool   // only a full node needs it
}

const (
	containerd = "github.com/containerd/containerd/v2/cmd/"
	cniPlugins = "github.com/containernetworking/plugins/plugins/"
)

var targets = []target{
	{name: "etcd", set: pinnedSet, pkg: "go.etcd.io/etcd/server/v3"},
	{name: "kube-apiserver", set: kubernetesSet, pkg: "k8s.io/kubernetes/cmd/kube-apiserver"},
	{name: "kube-controller-manager", set: kubernetesSet, pkg: "k8s.io/kubernetes/cmd/kube-controller-manager"},
	{name: "kubectl", set: kubernetesSet, pkg: "k8s.io/kubernetes/cmd/kubectl"},
	{name: "kube-scheduler", set: kubernetesSet, pkg: "k8s.io/kubernetes/cmd/kube-scheduler"},
	{name: "kubelet", set: kubernetesSet, pkg: "k8s.io/kubernetes/cmd/kubelet", node: true},
	{name: "containerd", set: pinnedSet, pkg: containerd + "containerd", node: true},
	{name: "containerd-shim-runc-v2", set: pinnedSet, pkg: containerd + "containerd-shim-runc-v2", node: true},
	{name: "ctr", set: pinnedSet, pkg: containerd + "ctr", node: true},
	{name: "bridge", set: pinnedSet, pkg: cniPlugins + "main/bridge", node: true},
	{name: "loopback", set: pinnedSet, pkg: cniPlugins + "main/loopback", node: true},
	{name: "host-local", set: pinnedSet, pkg: cniPlugins + "ipam/host-local", node: true},
	{name: "pause.tar", set: pauseSet, node: true},
}

// targets returns those of the cluster, in build order.
func (o Options) targets() []target {
	var needed []target
	for _, t := range targets {
		if !t.node || o.ProcessNodes == 0 {
			needed = append(needed, t)
		}
	}
	return needed
}

// built returns the file name that the go command gives to the program: the last element of its
// path that is no major version.
func (t target) built() string { return path.Base(strings.TrimSuffix(t.pkg, "/v3")) }

// linkerFlags strips binaries, and sets the version that those of Kubernetes report, which a module
// build does not know.
func linkerFlags(version string) string {
	const pkg = "k8s.io/component-base/version."
	minor, _, _ := strings.Cut(strings.TrimPrefix(version, "v1."), ".")
	return fmt.Sprintf("-s -w -X %sgitVersion=%s -X %sgitMajor=1 -X %sgitMinor=%s", pkg, version, pkg, pkg, minor)
}

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
	for _, library := range stagingModules(upstream) {
		_, _ = fmt.Fprintf(&text, "\t%s => %s %s\n", library, library, published)
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
