// Copyright The conversion-operator Authors.
// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// modulesPath is the directory of the pinned module set in a checkout.
const modulesPath = "internal/localcluster/modules"

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
